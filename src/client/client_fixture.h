// client_fixture.h - for tests of the client: a simulated world with a fake broker on one node and the client on another.
#ifndef CLIENT_CLIENT_FIXTURE_H
#define CLIENT_CLIENT_FIXTURE_H

#include "client/fake_broker.h"
#include "sim/sim.h"

struct client_fixture {
    struct ox_sim *sim;
    struct ox_sim_node *server, *machine;
    struct ox_loop *loop; // the client's
    struct fake_broker broker;
    struct ox_client *client;
};

// cmocka's setup and teardown: *state is a client_fixture with a client that answers the first error.
int client_fixture_setup(void **state);
int client_fixture_teardown(void **state);
// The same with a patient client.
int client_fixture_setup_patient(void **state);

// Calls and waits.
enum ox_err client_fixture_producer(struct client_fixture *f, const struct ox_client_producer_config *config,
                                    struct ox_client_producer **ret);
enum ox_err client_fixture_send(struct client_fixture *f, struct ox_client_producer *p, const char *text,
                                struct ox_client_send *send);
void client_fixture_close_producer(struct client_fixture *f, struct ox_client_producer *p);
enum ox_err client_fixture_consumer(struct client_fixture *f, const struct ox_client_consumer_config *config,
                                    struct ox_client_consumer **ret);
void client_fixture_close_consumer(struct client_fixture *f, struct ox_client_consumer *c);
// Lets virtual time pass.
void client_fixture_run(struct client_fixture *f, uint64_t ns);
// An entry of one message, or of a batch of n messages "0", "1", ...
struct ox_buf client_fixture_entry(const char *text, uint64_t sequence_id);
struct ox_buf client_fixture_batch(int n, uint64_t sequence_id);

#endif
