// inspect_int.h - what the files of this folder share.
#ifndef INSPECT_INSPECT_INT_H
#define INSPECT_INSPECT_INT_H

#include "base/buf.h"
#include "base/kv.h"
#include "base/mem.h"
#include "inspect/inspect.h"

static inline struct inspect *inspect_of(struct ox_seq *s)
{
    return CONTAINER_OF(s, struct inspect, seq);
}
// Ends the dump: `what` went wrong with `err`, which is said together with what to do about it.
ox_step inspect_failed(struct inspect *i, enum ox_err err, const char *what);
// Something went wrong, the dump goes on and ends with err.
void inspect_note(struct inspect *i, enum ox_err err, const char *what);
// All has been dumped.
ox_step inspect_finished(struct inspect *i);

// nodes.c, ledgers.c: the first steps, and giving memory back.
ox_step inspect_nodes_start(struct ox_seq *s);
void inspect_nodes_free(struct inspect_nodes *n);
ox_step inspect_ledgers_start(struct ox_seq *s);
void inspect_ledgers_free(struct inspect_ledgers *l);

// lines.c: JSON by hand, since each line has one of four shapes.
// Appends a string in quotes; bytes that are not UTF-8 become U+FFFD.
void line_string(struct ox_str *out, const char *text);
// Appends the bytes in hex, in quotes.
void line_hex(struct ox_str *out, struct ox_buf bytes);
// Appends the pairs as an object.
void line_kv(struct ox_str *out, const struct ox_kv *kv);
// Gives the line, with a newline, to the owner and empties it.
void line_emit(struct inspect *i, struct ox_str *line);

#endif
