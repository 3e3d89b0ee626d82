// data_job.c - one ledger of the data stage: copied (or its copy on record checked), then made primary by one compare-and-set.
#include <string.h>

#include "move/storage/data_int.h"

static ox_step job_begin(struct ox_seq *q);
static ox_step job_flip(struct ox_seq *q);
static ox_step job_flip_checked(struct ox_seq *q);
static ox_step job_copy(struct ox_seq *q);
static ox_step job_copied(struct ox_seq *q);
static ox_step job_relocate(struct ox_seq *q);
static ox_step job_relocated(struct ox_seq *q);
static ox_step job_drop(struct ox_seq *q);
static ox_step job_dropped(struct ox_seq *q);
static ox_step job_seal(struct ox_seq *q);
static ox_step job_seal_opened(struct ox_seq *q);
static ox_step job_sealed(struct ox_seq *q);
static ox_step job_compacted(struct ox_seq *q);
static ox_step job_compacted_moved(struct ox_seq *q);

static struct data_job *job_of(struct ox_seq *q)
{
    return CONTAINER_OF(q, struct data_job, seq);
}

static void job_done(struct ox_seq *q, enum ox_err err)
{
    struct data_job *j = job_of(q);
    (void)err;
    ox_timer_stop(&j->pause);
    if (j->copied)
        data_copy_fini(&j->copy);
    ox_op_finish(&j->op, OX_OK);
}

static void job_paused(struct ox_timer *t)
{
    ox_seq_resume(&CONTAINER_OF(t, struct data_job, pause)->seq, OX_OK);
}

void data_job_start(struct data_job *j, struct storage_data *d)
{
    struct ox_loop *loop = d->st->p.loop;
    ox_op_begin(&j->op);
    j->copy.d = d;
    j->bad_entry = -1;
    ox_timer_init(&j->pause, loop, job_paused);
    ox_seq_start(&j->seq, loop, "storage.job", job_begin, job_done);
}

void data_job_free(struct data_job *j)
{
    ox_str_fini(&j->why);
    ox_free(j->digest);
    ox_free(j->log);
    ox_free(j);
}

static struct ox_storage *job_storage(const struct data_job *j)
{
    return j->copy.d->st;
}

static ox_step job_over(struct data_job *j, enum data_outcome outcome, enum ox_err err)
{
    j->outcome = data_run_goes_on(j->run) || outcome == DATA_MOVED || outcome == DATA_GONE ? outcome : DATA_CANCELED;
    j->err = err;
    return OX_FINISH(&j->seq, OX_OK);
}

static ox_step job_begin(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    if (j->compacted)
        return OX_GOTO(q, job_compacted);
    if (j->seal)
        return OX_GOTO(q, job_seal);
    return j->flip ? OX_GOTO(q, job_flip) : OX_GOTO(q, job_copy);
}

// ---- a copy on record becomes primary again without copying

static ox_step job_flip(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    struct ox_kv owner = {0};
    ox_ml_owner(job_storage(j)->factory, j->log, NULL, &owner);
    ox_seq_bind(q, &j->open.op, "storage.flip");
    ox_router_open(job_storage(j)->p.router, &j->open, j->to, OX_OPEN_READ_ONLY, &owner);
    ox_kv_fini(&owner);
    return OX_WAIT(q, job_flip_checked);
}

static ox_step job_flip_checked(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    bool good = false;
    if (q->err == OX_OK) {
        const struct ox_ledger_info *info = &j->open.ledger->info;
        good = info->state == OX_LEDGER_CLOSED && info->last_entry + 1 >= j->entries && info->length >= j->bytes && j->digest;
        ox_ledger_release(j->open.ledger);
    }
    if (good)
        return OX_GOTO(q, job_relocate);
    if (q->err == OX_OK || q->err == OX_E_NO_LEDGER || q->err == OX_E_IDENTITY_MISMATCH || q->err == OX_E_CORRUPT) {
        ox_warn(job_storage(j)->p.log, "storage.flip.unusable",
                "log=\"%s\" ledger=%lld physical=%lld error=%s hint=" OX_LOG_Q, j->log, (long long)j->from.id,
                (long long)j->to.physical, ox_err_name(q->err), "the copy on record is not complete: it is copied anew");
        return OX_GOTO(q, job_copy);
    }
    ox_str_addf(&j->why, "the copy on record can't be opened: %s", ox_err_text(q->err));
    return job_over(j, DATA_BLOCKED, q->err);
}

// ---- the copy

static ox_step job_copy(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    struct storage_data *d = j->copy.d;
    j->copied = true;
    j->flip = false;
    j->copy = (struct data_copy){.d = d,
                                 .log = j->log,
                                 .from = j->from,
                                 .to = j->to.place,
                                 .physical = j->physical,
                                 .entries = j->entries,
                                 .expected = j->digest,
                                 .go_on = data_run_goes_on,
                                 .ctx = j->run};
    ox_seq_bind(q, &j->copy.op, "storage.copy");
    data_copy_start(&j->copy);
    return OX_WAIT(q, job_copied);
}

// What a failed copy means for the run.
static enum data_outcome job_failure(const struct data_job *j, enum ox_err err)
{
    if (err == OX_E_CANCELED || err == OX_E_SHUTDOWN)
        return DATA_CANCELED;
    if (j->copy.at_target)
        return err == OX_E_TOO_BIG                            ? DATA_REFUSED
               : err == OX_E_CHECKSUM || err == OX_E_CONFLICT ? DATA_FAILED
                                                              : DATA_BLOCKED;
    if (err == OX_E_NO_LEDGER)
        return DATA_LOST;
    bool damaged = err == OX_E_CORRUPT || err == OX_E_NO_ENTRY || err == OX_E_CHECKSUM;
    return damaged || err == OX_E_IDENTITY_MISMATCH ? DATA_REFUSED : DATA_FAILED;
}

static ox_step job_copied(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    if (q->err == OX_OK) {
        j->to = j->copy.made;
        ox_free(j->digest);
        j->digest = ox_strdup(j->copy.digest);
        return OX_GOTO(q, job_relocate);
    }
    ox_str_adds(&j->why, ox_str_get(&j->copy.why));
    j->bad_entry = j->copy.bad_entry;
    return job_over(j, job_failure(j, q->err), q->err);
}

static ox_step job_relocate(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    j->relocate =
        (struct ox_ml_relocate){.log = j->log, .ledger = j->from.id, .from = j->from, .to = j->to, .digest = j->digest};
    ox_seq_bind(q, &j->relocate.op, "storage.relocate");
    ox_ml_relocate(job_storage(j)->factory, &j->relocate);
    return OX_WAIT(q, job_relocated);
}

static ox_step job_again(struct data_job *j, uint64_t after_ns)
{
    ox_timer_start(&j->pause, after_ns);
    return OX_WAIT(&j->seq, job_relocate);
}

// What waiting does not change: somebody has deleted the copy meanwhile, or the record can't take it.
static bool job_must_copy(enum ox_err err)
{
    return err == OX_E_NO_LEDGER || err == OX_E_IDENTITY_MISMATCH || err == OX_E_CORRUPT || err == OX_E_LIMIT;
}

// Whatever may pass is waited for: the copy is there. It is found again if the run ends.
static ox_step job_relocated(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    bool goes_on = data_run_goes_on(j->run);
    if (q->err == OX_OK) {
        OX_CRASHPOINT(q->loop, "data.after_relocate");
        return job_over(j, DATA_MOVED, OX_OK);
    }
    if (q->err == OX_E_NOT_FOUND)
        return OX_GOTO(q, job_drop);
    if (q->err == OX_E_CONFLICT) {
        ox_str_adds(&j->why, "the record has changed: the ledger is elsewhere by now, or not sealed");
        return job_over(j, DATA_FAILED, q->err);
    }
    if (job_must_copy(q->err)) {
        ox_str_addf(&j->why, "the copy can't be made primary: %s; it is copied anew", ox_err_text(q->err));
        return job_over(j, DATA_FAILED, q->err);
    }
    if (q->err == OX_E_NO_LEDGER || q->err == OX_E_IDENTITY_MISMATCH)
        return job_over(j, DATA_LATER, q->err); // a cleanup has deleted the copy meanwhile: the next pass makes another
    if (q->err == OX_E_BUSY)
        return ++j->tries < DATA_BUSY_TRIES && goes_on ? job_again(j, DATA_BUSY_NS) : job_over(j, DATA_LATER, q->err);
    return goes_on ? job_again(j, STORAGE_RETRY_NS) : job_over(j, DATA_CANCELED, q->err);
}

// ---- the ledger was trimmed or its log deleted while it was copied

static ox_step job_drop(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    if (!j->copied)
        return job_over(j, DATA_GONE, OX_OK);
    job_storage(j)->data.bytes -= OX_MIN(j->copy.bytes, job_storage(j)->data.bytes);
    ox_seq_bind(q, &j->del.op, "storage.job.drop");
    data_copy_delete(&j->copy, &j->del);
    return OX_WAIT(q, job_dropped);
}

static ox_step job_dropped(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    if (q->err != OX_OK && q->err != OX_E_NO_LEDGER)
        ox_warn(job_storage(j)->p.log, "storage.job.drop_failed", "log=\"%s\" ledger=%lld physical=%lld error=%s",
                j->log, (long long)j->to.id, (long long)j->to.physical, ox_err_name(q->err));
    return job_over(j, DATA_GONE, OX_OK);
}

// ---- a log that nobody has loaded since its last ledger was written: opening it seals that one and begins the next in the active place

static ox_step job_seal(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    ox_seq_bind(q, &j->log_open.op, "storage.seal.open");
    ox_mledger_open(job_storage(j)->factory, &j->log_open, j->log, false);
    return OX_WAIT(q, job_seal_opened);
}

static ox_step job_seal_opened(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    if (q->err == OX_E_BUSY)
        return job_over(j, DATA_LATER, q->err);
    if (q->err == OX_E_NOT_FOUND)
        return job_over(j, DATA_GONE, OX_OK);
    if (q->err != OX_OK) {
        ox_str_addf(&j->why, "its log can't be opened, to seal its last ledger: %s", ox_err_text(q->err));
        return job_over(j, q->err == OX_E_SHUTDOWN ? DATA_CANCELED : DATA_FAILED, q->err);
    }
    ox_seq_bind(q, &j->log_close, "storage.seal.close");
    ox_mledger_close(j->log_open.ml, &j->log_close);
    return OX_WAIT(q, job_sealed);
}

// The next pass finds it sealed.
static ox_step job_sealed(struct ox_seq *q)
{
    return job_over(job_of(q), DATA_LATER, q->err);
}

// ---- a compacted ledger

static ox_step job_compacted(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    const struct ox_ml_factory *f = job_storage(j)->factory;
    if (!f->compacted)
        return job_over(j, DATA_CANCELED, OX_E_SHUTDOWN);
    ox_seq_bind(q, &j->log_close, "storage.compacted");
    f->compacted(f->compacted_ctx, &j->log_close, j->log);
    return OX_WAIT(q, job_compacted_moved);
}

static ox_step job_compacted_moved(struct ox_seq *q)
{
    struct data_job *j = job_of(q);
    if (q->err == OX_OK)
        return job_over(j, DATA_MOVED, OX_OK);
    if (q->err == OX_E_NOT_FOUND)
        return job_over(j, DATA_GONE, OX_OK);
    if (q->err == OX_E_BUSY || q->err == OX_E_CANCELED || q->err == OX_E_TOPIC_FENCED)
        return job_over(j, DATA_LATER, q->err);
    ox_str_addf(&j->why, "the topic's compacted ledger can't be written anew: %s", ox_err_text(q->err));
    return job_over(j, q->err == OX_E_SHUTDOWN ? DATA_CANCELED : DATA_FAILED, q->err);
}
