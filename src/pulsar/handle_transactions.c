// handle_transactions.c - the commands of transactions: each gets its own answer, which says that they are not supported.
#include "pulsar/handlers.h"

static const char refusal[] = "transactions are not supported by this broker";

#define REFUSE(handler, Command, Response, RESPONSE, TYPE)                  \
    enum ox_err handler(struct session *s, const void *command)             \
    {                                                                       \
        const Oxpb__Command##Command *c = command;                          \
        Oxpb__Command##Response answer = OXPB__COMMAND_##RESPONSE##__INIT;  \
        answer.request_id = c->request_id;                                  \
        answer.has_error = 1;                                               \
        answer.error = OXPB__SERVER_ERROR__NotAllowedError;                 \
        answer.message = (char *)(uintptr_t)refusal;                        \
        session_command(s, OXPB__BASE_COMMAND__TYPE__##TYPE, &answer.base); \
        return OX_OK;                                                       \
    }

REFUSE(handle_tc_client_connect, TcClientConnectRequest, TcClientConnectResponse, TC_CLIENT_CONNECT_RESPONSE,
       TC_CLIENT_CONNECT_RESPONSE)
REFUSE(handle_new_txn, NewTxn, NewTxnResponse, NEW_TXN_RESPONSE, NEW_TXN_RESPONSE)
REFUSE(handle_add_partition_to_txn, AddPartitionToTxn, AddPartitionToTxnResponse, ADD_PARTITION_TO_TXN_RESPONSE,
       ADD_PARTITION_TO_TXN_RESPONSE)
REFUSE(handle_add_subscription_to_txn, AddSubscriptionToTxn, AddSubscriptionToTxnResponse,
       ADD_SUBSCRIPTION_TO_TXN_RESPONSE, ADD_SUBSCRIPTION_TO_TXN_RESPONSE)
REFUSE(handle_end_txn, EndTxn, EndTxnResponse, END_TXN_RESPONSE, END_TXN_RESPONSE)
REFUSE(handle_end_txn_on_partition, EndTxnOnPartition, EndTxnOnPartitionResponse, END_TXN_ON_PARTITION_RESPONSE,
       END_TXN_ON_PARTITION_RESPONSE)
REFUSE(handle_end_txn_on_subscription, EndTxnOnSubscription, EndTxnOnSubscriptionResponse,
       END_TXN_ON_SUBSCRIPTION_RESPONSE, END_TXN_ON_SUBSCRIPTION_RESPONSE)
