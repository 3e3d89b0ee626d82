// client_fixture.c - for tests of the client: a simulated world with a fake broker on one node and the client on another.
#include "client/client_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/message_build.h"

static int fixture_setup(void **state, bool patient)
{
    struct client_fixture *f = ox_malloc(sizeof *f);
    f->sim = ox_sim_new(1, NULL);
    f->server = ox_sim_node_new(f->sim, "broker");
    f->machine = ox_sim_node_new(f->sim, "client");
    f->loop = ox_sim_loop(f->machine);
    fake_broker_start(&f->broker, ox_sim_net(f->server));
    struct ox_client_config config = {.net = ox_sim_net(f->machine), .service_url = "pulsar://broker:6650", .patient = patient};
    assert_int_equal(ox_client_new(&config, &f->client), OX_OK);
    *state = f;
    return 0;
}

int client_fixture_setup(void **state)
{
    return fixture_setup(state, false);
}

int client_fixture_setup_patient(void **state)
{
    return fixture_setup(state, true);
}

int client_fixture_teardown(void **state)
{
    struct client_fixture *f = *state;
    struct ox_op op = {0};
    ox_op_init(&op, f->loop, ox_sim_done, "close");
    ox_client_close(f->client, &op);
    assert_int_equal(ox_sim_wait(f->sim, &op), OX_OK);
    fake_broker_stop(&f->broker);
    client_fixture_run(f, OX_SEC);
    ox_sim_free(f->sim);
    ox_free(f);
    return 0;
}

enum ox_err client_fixture_producer(struct client_fixture *f, const struct ox_client_producer_config *config,
                                    struct ox_client_producer **ret)
{
    struct ox_client_producer_open open = {0};
    ox_op_init(&open.call.op, f->loop, ox_sim_done, "open");
    ox_client_producer_open(f->client, &open, config);
    enum ox_err err = ox_sim_wait(f->sim, &open.call.op);
    *ret = open.producer;
    return err;
}

enum ox_err client_fixture_send(struct client_fixture *f, struct ox_client_producer *p, const char *text,
                                struct ox_client_send *send)
{
    ox_op_init(&send->op, f->loop, ox_sim_done, "send");
    send->payload = ox_buf_static(text, strlen(text));
    ox_client_producer_send(p, send);
    return ox_sim_wait(f->sim, &send->op);
}

void client_fixture_close_producer(struct client_fixture *f, struct ox_client_producer *p)
{
    struct ox_op op = {0};
    ox_op_init(&op, f->loop, ox_sim_done, "close");
    ox_client_producer_close(p, &op);
    assert_int_equal(ox_sim_wait(f->sim, &op), OX_OK);
}

enum ox_err client_fixture_consumer(struct client_fixture *f, const struct ox_client_consumer_config *config,
                                    struct ox_client_consumer **ret)
{
    struct ox_client_consumer_open open = {0};
    ox_op_init(&open.call.op, f->loop, ox_sim_done, "open");
    ox_client_consumer_open(f->client, &open, config);
    enum ox_err err = ox_sim_wait(f->sim, &open.call.op);
    *ret = open.consumer;
    return err;
}

void client_fixture_close_consumer(struct client_fixture *f, struct ox_client_consumer *c)
{
    struct ox_op op = {0};
    ox_op_init(&op, f->loop, ox_sim_done, "close");
    ox_client_consumer_close(c, &op);
    assert_int_equal(ox_sim_wait(f->sim, &op), OX_OK);
}

void client_fixture_run(struct client_fixture *f, uint64_t ns)
{
    ox_sim_run_for(f->sim, ns);
}

static char producer_name[] = "writer";

struct ox_buf client_fixture_entry(const char *text, uint64_t sequence_id)
{
    Oxpb__MessageMetadata metadata = OXPB__MESSAGE_METADATA__INIT;
    metadata.producer_name = producer_name;
    metadata.sequence_id = sequence_id;
    return ox_entry_build(&metadata, text, strlen(text));
}

struct ox_buf client_fixture_batch(int n, uint64_t sequence_id)
{
    Oxpb__MessageMetadata metadata = OXPB__MESSAGE_METADATA__INIT;
    struct ox_str batch = {0};
    for (int i = 0; i < n; i++) {
        char text[16];
        Oxpb__SingleMessageMetadata single = OXPB__SINGLE_MESSAGE_METADATA__INIT;
        ox_batch_add(&batch, &single, text, (size_t)snprintf(text, sizeof text, "%d", i));
    }
    metadata.producer_name = producer_name;
    metadata.sequence_id = sequence_id;
    metadata.has_num_messages_in_batch = 1;
    metadata.num_messages_in_batch = n;
    struct ox_buf entry = ox_entry_build(&metadata, batch.data, batch.len);
    ox_str_fini(&batch);
    return entry;
}
