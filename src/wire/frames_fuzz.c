// frames_fuzz.c - a byte stream cut into reads by its own first byte, through the frame reader and the entry parser.
#include "base/assert.h"
#include "base/mem.h"
#include "fuzz.h"
#include "wire/pulsar_frame.h"

#include <string.h>

#define FRAME_MAX 100000u
#define COMMAND_MAX 10000u

static void fuzz_frame(struct ox_buf frame)
{
    struct ox_buf command, body;
    struct ox_message_view view;
    if (ox_frame_split(frame, &command, &body) != OX_OK)
        return;
    OX_ASSERT(command.len + body.len + 4 == frame.len);
    if (ox_message_parse(body, true, &view) == OX_OK)
        OX_ASSERT(view.metadata.len + view.payload.len + 4 == view.plain.len && view.entry.len <= body.len);
}

// Cuts all frames that are complete; false at an error.
static bool fuzz_cut(struct ox_frame_reader *r)
{
    struct ox_buf frame;
    while (ox_frame_reader_next(r, &frame) == OX_OK) {
        if (frame.len == 0)
            return true;
        fuzz_frame(frame);
        ox_buf_unref(&frame);
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ox_frame_reader r;
    size_t step = size ? data[0] + 1u : 1, at = size ? 1 : 0;
    ox_frame_reader_init(&r, FRAME_MAX, COMMAND_MAX);
    while (at < size) {
        uint8_t *to;
        size_t room;
        ox_frame_reader_space(&r, &to, &room);
        size_t n = OX_MIN(OX_MIN(step, room), size - at);
        OX_ASSERT(n > 0);
        memcpy(to, data + at, n);
        ox_frame_reader_filled(&r, n);
        at += n;
        if (!fuzz_cut(&r))
            break;
    }
    ox_frame_reader_fini(&r);
    return 0;
}
