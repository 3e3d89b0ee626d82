// inspect.h - what a stopped broker's data folder holds, as lines of JSON.
#ifndef INSPECT_INSPECT_H
#define INSPECT_INSPECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "io/file.h"
#include "io/seq.h"

enum inspect_what {
    INSPECT_NODES, // {"path","version","hex"} of every node at and below `prefix`, parents first, siblings sorted bytewise
    INSPECT_LEDGERS, // {"ledger","state","last_entry","length","custom"} of every ledger, sorted by id
    INSPECT_ENTRIES, // {"ledger","entry","hex"} of every entry of `ids`; {"ledger","entry","error","where"} of an entry that cannot be read
};

struct inspect_nodes;
struct inspect_ledgers;

// One dump. Zero it, set the public members, then inspect_start; inspect_fini when it has ended.
struct inspect {
    struct ox_loop *loop;   // public
    struct ox_fs *fs;       // public
    const char *dir;        // public: the data folder: metadata in DIR/metadata, ledgers in DIR/store; borrowed
    enum inspect_what what; // public
    const char *prefix;     // public: of INSPECT_NODES: a path, NULL: all; borrowed
    const int64_t *ids;     // public: of INSPECT_ENTRIES; borrowed
    size_t id_count;        // public
    void *owner;            // public
    void (*line)(struct inspect *i, const char *text, size_t len); // public: gets each line with its newline
    void (*ended)(struct inspect *i, enum ox_err err); // public: called once, from the loop; `trouble` says why it is not OK

    struct ox_str trouble; // read-only: a sentence a line: what is wrong and what to do

    // private
    enum ox_err outcome; // of what went wrong without ending the dump
    struct ox_seq seq;
    struct ox_op op;
    struct inspect_nodes *nodes;
    struct inspect_ledgers *ledgers;
};

// Starts; `ended` follows. Errors: LOCKED (the broker runs), NOT_FOUND (no such folder, no such node), NO_LEDGER (the other ledgers were dumped),
// CORRUPT (the rest was dumped), ACCESS, IO, UNSUPPORTED.
void inspect_start(struct inspect *i);
// Frees what the dump holds.
void inspect_fini(struct inspect *i);

#endif
