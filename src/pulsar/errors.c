// errors.c - our errors in the protocol's words, in one exhaustive switch.
#include <stdio.h>

#include "base/assert.h"
#include "pulsar/session.h"

Oxpb__ServerError server_error(enum ox_err err)
{
    switch (err) {
    case OX_E_CANCELED:
    case OX_E_SHUTDOWN:
    case OX_E_BUSY:
    case OX_E_TIMEOUT:
    case OX_E_DISCONNECTED:
    case OX_E_CONNECTION_REFUSED:
    case OX_E_TOPIC_FENCED:
    case OX_E_FENCED:
    case OX_E_CLOSED:
    case OX_E_NOT_OWNER: return OXPB__SERVER_ERROR__ServiceNotReady;
    case OX_E_LIMIT: return OXPB__SERVER_ERROR__TooManyRequests;
    case OX_E_INVALID:
    case OX_E_UNSUPPORTED:
    case OX_E_TOO_BIG:
    case OX_E_MALFORMED:
    case OX_E_EXISTS: return OXPB__SERVER_ERROR__NotAllowedError;
    case OX_E_CHECKSUM: return OXPB__SERVER_ERROR__ChecksumError;
    case OX_E_CORRUPT:
    case OX_E_IO:
    case OX_E_NO_SPACE:
    case OX_E_ACCESS:
    case OX_E_LOCKED:
    case OX_E_NO_LEDGER:
    case OX_E_NO_ENTRY:
    case OX_E_LEDGER_EXISTS:
    case OX_E_IDENTITY_MISMATCH:
    case OX_E_PLACE_FAILED:
    case OX_E_PLACE_CLOSED:
    case OX_E_PLACE_CHANGED:
    case OX_E_PLACE_BLOCKED:
    case OX_E_DUPLICATE_UNKNOWN:
    case OX_E_NO_PLACE: return OXPB__SERVER_ERROR__PersistenceError;
    case OX_E_UNKNOWN_OUTCOME:
    case OX_E_NOT_FOUND:
    case OX_E_END_OF_FILE:
    case OX_E_ADDRESS_IN_USE:
    case OX_E_BAD_VERSION:
    case OX_E_NO_PARENT:
    case OX_E_NOT_EMPTY:
    case OX_E_SESSION_EXPIRED:
    case OX_E_METADATA_FULL:
    case OX_E_ENCRYPTION_REQUIRED:
    case OX_E_SUBSCRIPTION_BUSY: return OXPB__SERVER_ERROR__MetadataError;
    case OX_E_TOPIC_NOT_FOUND:
    case OX_E_NAMESPACE_NOT_FOUND: return OXPB__SERVER_ERROR__TopicNotFound;
    case OX_E_INVALID_TOPIC_NAME: return OXPB__SERVER_ERROR__InvalidTopicName;
    case OX_E_TOPIC_TERMINATED: return OXPB__SERVER_ERROR__TopicTerminatedError;
    case OX_E_SUBSCRIPTION_NOT_FOUND: return OXPB__SERVER_ERROR__SubscriptionNotFound;
    case OX_E_CONSUMER_NOT_FOUND: return OXPB__SERVER_ERROR__ConsumerNotFound;
    case OX_E_CONSUMER_BUSY: return OXPB__SERVER_ERROR__ConsumerBusy;
    case OX_E_CONSUMER_ASSIGN: return OXPB__SERVER_ERROR__ConsumerAssignError;
    case OX_E_QUOTA_HOLD: return OXPB__SERVER_ERROR__ProducerBlockedQuotaExceededError;
    case OX_E_QUOTA_EXCEPTION: return OXPB__SERVER_ERROR__ProducerBlockedQuotaExceededException;
    case OX_E_NOT_ALLOWED: return OXPB__SERVER_ERROR__NotAllowedError;
    case OX_E_PRODUCER_BUSY: return OXPB__SERVER_ERROR__ProducerBusy;
    case OX_E_PRODUCER_FENCED: return OXPB__SERVER_ERROR__ProducerFenced;
    case OX_E_OK:
    case OX_E_CONFLICT:
    case OX_E_PRODUCER_NOT_FOUND:
    case OX_ERR_COUNT: return OXPB__SERVER_ERROR__UnknownError;
    }
    OX_UNREACHABLE("an error that is not listed");
}

void error_text(char *out, size_t n, enum ox_err err, const char *what, const char *why)
{
    const char *text = why ? why : ox_err_text(err);
    if (what)
        snprintf(out, n, "%s: %s", text, what);
    else
        snprintf(out, n, "%s", text);
}
