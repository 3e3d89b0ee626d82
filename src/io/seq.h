// seq.h - sequences: a job of several operations, written as step functions in reading order.
#ifndef IO_SEQ_H
#define IO_SEQ_H

#include "io/op.h"

struct ox_seq;
typedef enum { OX_STEP_WAIT, OX_STEP_NEXT, OX_STEP_DONE } ox_step; // how a step left; made by the macros below only
typedef ox_step (*ox_step_fn)(struct ox_seq *s);

// Embedded in the job's owner. A step looks at s->err (the outcome of the operation waited for) first.
struct ox_seq {
    enum ox_err err;                                 // read-only for steps: outcome of what was last waited for
    struct ox_loop *loop;                            // read-only
    const char *name;                                // read-only, static: the job
    const char *step;                                // read-only, static: the step waited in, or running
    ox_step_fn next;                                 // private
    void (*done)(struct ox_seq *s, enum ox_err err); // private: called once, from the loop
    bool active;                                     // read-only
    struct ox_op kick;                               // private
};

// Starts a job at `first`, which runs from the ready queue (not inside this call). `done` is called exactly once when a step returns OX_FINISH.
void ox_seq_start(struct ox_seq *s, struct ox_loop *loop, const char *name, ox_step_fn first,
                  void (*done)(struct ox_seq *s, enum ox_err err));
// Prepares an operation (also one inside a typed operation: `&get.op`) whose completion resumes the sequence with the operation's outcome. Use it instead of
// ox_op_init right before the call that starts it; that step returns OX_WAIT.
void ox_seq_bind(struct ox_seq *s, struct ox_op *op, const char *what);
// Resumes a waiting sequence by hand with an outcome (from an op's own done function, a timer or an event); the step runs from the ready queue. Once per wait (asserted).
void ox_seq_resume(struct ox_seq *s, enum ox_err err);
// For the macros: notes where to go on.
ox_step ox_seq_goto(struct ox_seq *s, ox_step_fn fn, const char *step, ox_step how);
ox_step ox_seq_finish(struct ox_seq *s, enum ox_err err);

// Wait for the bound operation, then run fn.
#define OX_WAIT(s, fn) ox_seq_goto((s), (fn), #fn, OX_STEP_WAIT)
// Run fn at once (no trip through the loop).
#define OX_GOTO(s, fn) ox_seq_goto((s), (fn), #fn, OX_STEP_NEXT)
// The job is over; `done` is called before the sequence machinery returns to the loop; the owner may free the sequence in it.
#define OX_FINISH(s, err) ox_seq_finish((s), (err))

#endif
