// demo.h - what the parts of oxbow-demo share: a broker process, clients that count every message, an operator at the REST door, and a live picture of it.
#ifndef TESTS_DEMO_DEMO_H
#define TESTS_DEMO_DEMO_H

#include <jansson.h>
#include <sys/types.h>

#include "base/str.h"
#include "client/client.h"
#include "io/seq.h"

// ---- broker.c: the process and its folder

struct demo_broker {
    pid_t pid;
    char folder[64];  // fresh, removed at the end
    char binary[512]; // oxbowd
    uint16_t port, web_port;
};
// Makes a fresh folder and starts oxbowd in it on free ports. False: a message was printed.
bool broker_start(struct demo_broker *b, const char *own_path);
// Has it said that it is ready? Then the ports are known. False and *ret_gone: it has ended.
bool broker_is_ready(struct demo_broker *b, bool *ret_gone);
// Prints the end of its log.
void broker_print_log(const struct demo_broker *b);
// Ends the process and removes the folder; false if it had ended by itself or did not end cleanly.
bool broker_end(struct demo_broker *b);

// ---- load.c: producers and consumers that know what was promised

struct demo_load;
struct demo_counts {
    uint64_t sent, acked, failed, received;
    uint64_t missing; // passed over so far: acknowledged or not
    uint64_t lost;    // acknowledged and not received; meaningful at the end
    uint64_t doubled;
    uint64_t bytes;    // acknowledged
    uint64_t pause_ns; // the longest wait of a producer between two receipts
};
// Opens a producer and a consumer for each topic and begins to send when all are open.
struct demo_load *load_start(struct ox_loop *loop, struct ox_net *net, const char *url);
// All are open and the first receipts are there.
bool load_flows(const struct demo_load *l);
// No new messages.
void load_finish(struct demo_load *l);
// All that was sent is answered and all that was acknowledged has been received.
bool load_is_over(const struct demo_load *l);
void load_count(const struct demo_load *l, struct demo_counts *ret);
// What went wrong with a client, "" if nothing did.
const char *load_trouble(const struct demo_load *l);

// ---- rest.c: one HTTP request

struct rest_call {
    struct ox_op op;          // OK: an answer of whatever status came
    int status;               // result
    json_t *answer;           // result, NULL if the body is none; freed by the next call or rest_fini
    struct ox_str text;       // private: the answer as it came
    struct ox_buf request;    // private
    struct ox_op connect;     // private
    struct ox_stream *stream; // private
    uint8_t block[4096];      // private
};
// Sends it and waits for the whole answer; body may be NULL. op must be initialised.
void rest_ask(struct ox_net *net, struct rest_call *c, uint16_t port, const char *method, const char *path, const char *body);
void rest_fini(struct rest_call *c);

// ---- show.c: the live picture

struct demo_show {
    bool terminal;
    int lines; // to go up before the next picture
    uint64_t printed_ns;
    char chapter[96]; // what is being done
};
void show_init(struct demo_show *s);
// One picture: counts, and the bars of the switch's stages (status may be NULL). On a terminal in place, else a line a second.
void show_draw(struct demo_show *s, uint64_t now_ns, uint64_t began_ns, const struct demo_counts *c, const json_t *status);
// What is being done from now on, on a line of its own.
void show_chapter(struct demo_show *s, uint64_t now_ns, uint64_t began_ns, const char *what);

#endif
