// server_error.c - what the errors of Pulsar's protocol mean here.
#include "client/client.h"

enum ox_err ox_client_err_of_server(Oxpb__ServerError error)
{
    switch (error) {
    case OXPB__SERVER_ERROR__UnknownError:
    case OXPB__SERVER_ERROR__MetadataError: return OX_E_UNKNOWN_OUTCOME;
    case OXPB__SERVER_ERROR__PersistenceError: return OX_E_PLACE_FAILED;
    case OXPB__SERVER_ERROR__AuthenticationError:
    case OXPB__SERVER_ERROR__AuthorizationError: return OX_E_ACCESS;
    case OXPB__SERVER_ERROR__ConsumerBusy: return OX_E_CONSUMER_BUSY;
    case OXPB__SERVER_ERROR__ServiceNotReady:
    case OXPB__SERVER_ERROR__TransactionCoordinatorNotFound: return OX_E_NOT_OWNER;
    case OXPB__SERVER_ERROR__ProducerBlockedQuotaExceededError:
    case OXPB__SERVER_ERROR__ProducerBlockedQuotaExceededException:
    case OXPB__SERVER_ERROR__TooManyRequests: return OX_E_LIMIT;
    case OXPB__SERVER_ERROR__ChecksumError: return OX_E_CHECKSUM;
    case OXPB__SERVER_ERROR__UnsupportedVersionError:
    case OXPB__SERVER_ERROR__NotAllowedError: return OX_E_UNSUPPORTED;
    case OXPB__SERVER_ERROR__TopicNotFound: return OX_E_TOPIC_NOT_FOUND;
    case OXPB__SERVER_ERROR__SubscriptionNotFound: return OX_E_SUBSCRIPTION_NOT_FOUND;
    case OXPB__SERVER_ERROR__ConsumerNotFound: return OX_E_CONSUMER_NOT_FOUND;
    case OXPB__SERVER_ERROR__TopicTerminatedError: return OX_E_TOPIC_TERMINATED;
    case OXPB__SERVER_ERROR__ProducerBusy: return OX_E_PRODUCER_BUSY;
    case OXPB__SERVER_ERROR__InvalidTopicName: return OX_E_INVALID_TOPIC_NAME;
    case OXPB__SERVER_ERROR__IncompatibleSchema:
    case OXPB__SERVER_ERROR__ConsumerAssignError:
    case OXPB__SERVER_ERROR__InvalidTxnStatus: return OX_E_INVALID;
    case OXPB__SERVER_ERROR__TransactionConflict: return OX_E_BUSY;
    case OXPB__SERVER_ERROR__TransactionNotFound: return OX_E_NOT_FOUND;
    case OXPB__SERVER_ERROR__ProducerFenced: return OX_E_PRODUCER_FENCED;
    case _OXPB__SERVER_ERROR_IS_INT_SIZE: break;
    }
    return OX_E_UNKNOWN_OUTCOME;
}
