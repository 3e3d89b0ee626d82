// err.h - the one list of errors, their classes and their texts.
#ifndef BASE_ERR_H
#define BASE_ERR_H

// What a caller may do about an error.
enum ox_err_class {
    OX_CLASS_OK,
    OX_CLASS_RETRY,   // try the same again later
    OX_CLASS_REFRESH, // what the caller knows is stale: look it up again, then retry
    OX_CLASS_FENCED,  // somebody else owns the thing: stop, never retry
    OX_CLASS_CLIENT,  // the request is wrong
    OX_CLASS_FATAL,   // the component cannot go on
};

enum ox_err {
#define OX_ERROR(name, class, text) OX_E_##name,
#include "base/errors.def"
#undef OX_ERROR
    OX_ERR_COUNT
};

#define OX_OK OX_E_OK

// Every function that can fail has its result looked at.
#define OX_CHECKED __attribute__((warn_unused_result))

// The error's short name, as in logs ("NOT_FOUND"). Never NULL.
const char *ox_err_name(enum ox_err err);

// One sentence for a person. Never NULL.
const char *ox_err_text(enum ox_err err);

// The error's class.
enum ox_err_class ox_err_class(enum ox_err err);

// The error that an errno value stands for (0 gives OX_OK, an unlisted one IO).
enum ox_err ox_err_from_errno(int errno_value);

#endif
