// capture_test.h - for tests: what is printed, as text.
#ifndef OXBOWCTL_CAPTURE_TEST_H
#define OXBOWCTL_CAPTURE_TEST_H

#include <stdio.h>
#include <stdlib.h>

struct capture {
    FILE **stream, *saved;
    char *text; // what was printed, after capture_end; to be given to free()
    size_t len;
};

// From here on what is printed to a stream (&stdout, &stderr) is kept. *c must stay where it is until capture_end.
static inline void capture_begin(struct capture *c, FILE **stream)
{
    fflush(*stream);
    *c = (struct capture){.stream = stream, .saved = *stream};
    *stream = open_memstream(&c->text, &c->len);
}

// Ends it: the text is there.
static inline void capture_end(struct capture *c)
{
    fclose(*c->stream);
    *c->stream = c->saved;
}

#endif
