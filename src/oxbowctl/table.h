// table.h - the table of verbs, made from spec/commands (its README says what each member means), and finding things in it.
#ifndef OXBOWCTL_TABLE_H
#define OXBOWCTL_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl;

enum ctl_type {
    CTL_FLAG,
    CTL_TEXT,
    CTL_INT,
    CTL_NUMBER,
    CTL_BOOL,
    CTL_ENUM,
    CTL_LIST,
    CTL_MAP,
    CTL_TIME,
    CTL_AGO,
    CTL_SIZE,
    CTL_ID,
    CTL_JSON,
    CTL_FILE,
    CTL_TOPIC,
    CTL_NAMESPACE,
    CTL_PLACE, // a namespace or a topic
};

// An argument or an option of a verb.
struct ctl_word {
    const char *name;   // of its value, for help
    const char *names;  // of the option, separated by spaces; the long one last. NULL: an argument that is only a word
    const char *help;   // one line
    const char *to;     // path.NAME, query.NAME, body, body.a.b, or NULL
    const char *unit;   // what a time or size is sent in: ms, s, min, h; B, MB
    const char *values; // of an enum, separated by '|'
    const char *standard; // taken where it is not given, as typed; or NULL
    const char *sent;     // by a flag, as JSON; NULL: true
    int64_t min, max;     // valid if has_...
    enum ctl_type type;
    bool has_min, has_max;
    bool positional; // a word, in its order
    bool required;
    bool many;  // a text that may be given again
    bool twice; // in a path it is encoded twice
};

struct ctl_route {
    const char *method;
    const char *path; // with {names}
};

struct ctl_fixed {
    const char *to;   // as in ctl_word
    const char *json; // what is always sent there
};

struct ctl_row {
    const char *verb;    // "": the noun is the whole command
    const char *aliases; // separated by spaces, or NULL
    const char *summary, *help, *example;
    const struct ctl_word *words; // arguments first
    const struct ctl_route *routes;
    const struct ctl_fixed *fixed;
    size_t word_count, route_count, fixed_count;
    const char *exactly_one, *at_least_one; // options' names separated by spaces, or NULL
    const char *update_of;                  // the path of a GET whose answer is the body at first, or NULL
    const char *good;                   // a member that must be true ("x") or empty ("!x") for exit status 0, or NULL
    const char *done;                   // said to people when all went well, or NULL
    void (*show)(const json_t *answer); // shows an answer to people
    int (*run)(struct ctl *ctl);        // returns the exit status; NULL: one request, made of the row
    bool patient;                       // an answer may take hours
};

struct ctl_noun {
    const char *noun;
    const char *aliases; // separated by spaces, or NULL
    const char *about;   // one line
    const char *also;    // a noun whose verbs may be said with this one too, without a place in its help; or NULL
    const struct ctl_row *rows;
    size_t row_count;
};

// All nouns, in the order of the overview.
const struct ctl_noun *ctl_nouns(size_t *ret_count);
// The noun of a name or alias, or NULL.
const struct ctl_noun *ctl_noun_find(const char *name);
// A noun's verb of a name or alias, or one of its `also`; or NULL. A verb "" is found by any name.
const struct ctl_row *ctl_row_find(const struct ctl_noun *noun, const char *name);
// True if a list of names, separated by a character, has this one. NULL has none.
bool ctl_names_have(const char *names, char separator, const char *name, size_t len);
// What an option is called in messages: its last name; an argument: the name of its value. To be freed.
char *ctl_word_label(const struct ctl_word *word);

// The nearest of many words to a mistyped one.
struct ctl_nearest {
    const char *typed;
    const char *best; // borrowed, best_len bytes; NULL: none is near
    size_t best_len;
    size_t distance; // private
};
// Looks at a list of names (NULL: none), separated by a character. Zero the struct and set `typed` first.
void ctl_nearest_look(struct ctl_nearest *n, const char *names, char separator);
// " (did you mean 'x'?)" or ""; to be freed.
char *ctl_nearest_hint(const struct ctl_nearest *n);

#endif
