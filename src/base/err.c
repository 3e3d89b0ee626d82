// err.c - names, texts and classes of errors, all from errors.def.
#include "base/err.h"

#include <errno.h>
#include <stddef.h>

#include "base/assert.h"

struct err_row {
    const char *name, *text;
    enum ox_err_class class;
};

static const struct err_row err_rows[] = {
#define OX_ERROR(name, class, text) {#name, text, class},
#include "base/errors.def"
#undef OX_ERROR
};

static const struct err_row *err_row(enum ox_err err)
{
    OX_ASSERT((unsigned)err < OX_ERR_COUNT);
    return &err_rows[err];
}

const char *ox_err_name(enum ox_err err)
{
    return err_row(err)->name;
}

const char *ox_err_text(enum ox_err err)
{
    return err_row(err)->text;
}

enum ox_err_class ox_err_class(enum ox_err err)
{
    return err_row(err)->class;
}

static const struct {
    int number;
    enum ox_err err;
} err_errnos[] = {
    {0, OX_OK},
    {ENOSPC, OX_E_NO_SPACE},
    {EDQUOT, OX_E_NO_SPACE},
    {EACCES, OX_E_ACCESS},
    {EPERM, OX_E_ACCESS},
    {EROFS, OX_E_ACCESS},
    {EEXIST, OX_E_EXISTS},
    {ENOENT, OX_E_NOT_FOUND},
    {EADDRINUSE, OX_E_ADDRESS_IN_USE},
    {ECONNREFUSED, OX_E_CONNECTION_REFUSED},
    {ECONNRESET, OX_E_DISCONNECTED},
    {ECONNABORTED, OX_E_DISCONNECTED},
    {ENOTCONN, OX_E_DISCONNECTED},
    {EPIPE, OX_E_DISCONNECTED},
    {ENETUNREACH, OX_E_DISCONNECTED},
    {EHOSTUNREACH, OX_E_DISCONNECTED},
    {ETIMEDOUT, OX_E_TIMEOUT},
    {ECANCELED, OX_E_CANCELED},
    {EBUSY, OX_E_BUSY},
    {EAGAIN, OX_E_BUSY},
    {ENOTEMPTY, OX_E_NOT_EMPTY},
    {EINVAL, OX_E_INVALID},
    {ENOMEM, OX_E_LIMIT},
    {EMFILE, OX_E_LIMIT},
    {ENFILE, OX_E_LIMIT},
    {EFBIG, OX_E_TOO_BIG},
    {ENOTSUP, OX_E_UNSUPPORTED},
};

enum ox_err ox_err_from_errno(int errno_value)
{
    for (size_t i = 0; i < sizeof err_errnos / sizeof err_errnos[0]; i++)
        if (err_errnos[i].number == errno_value)
            return err_errnos[i].err;
    return OX_E_IO;
}
