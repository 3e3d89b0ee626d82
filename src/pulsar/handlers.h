// handlers.h - one handler for each command; those that take bytes decode them by hand.
#ifndef PULSAR_HANDLERS_H
#define PULSAR_HANDLERS_H

#include "pulsar/session.h"

// The hot ones: sub is the command's bytes, body what follows the command. Errors: the connection ends.
enum ox_err handle_send(struct session *s, struct ox_buf sub, struct ox_buf body) OX_CHECKED;
enum ox_err handle_ack(struct session *s, struct ox_buf sub, struct ox_buf body) OX_CHECKED;
enum ox_err handle_flow(struct session *s, struct ox_buf sub, struct ox_buf body) OX_CHECKED;
enum ox_err handle_ping(struct session *s, struct ox_buf sub, struct ox_buf body) OX_CHECKED;
enum ox_err handle_pong(struct session *s, struct ox_buf sub, struct ox_buf body) OX_CHECKED;

// The others get the unpacked command, which lives until they return.
enum ox_err handle_connect(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_partition_metadata(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_lookup(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_producer(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_close_producer(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_subscribe(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_close_consumer(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_unsubscribe(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_redeliver(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_seek(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_get_last_message_id(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_consumer_stats(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_get_topics(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_watch_topics(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_watch_topics_close(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_get_schema(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_get_or_create_schema(struct session *s, const void *command) OX_CHECKED;
// Transactions (handle_transactions.c): a clear refusal each.
enum ox_err handle_tc_client_connect(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_new_txn(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_add_partition_to_txn(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_add_subscription_to_txn(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_end_txn(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_end_txn_on_partition(struct session *s, const void *command) OX_CHECKED;
enum ox_err handle_end_txn_on_subscription(struct session *s, const void *command) OX_CHECKED;

#endif
