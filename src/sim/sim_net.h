// sim_net.h - what a test can do to the simulated network.
//
// The model. A listener is reached at its node's name and its port, from its own node also as 127.0.0.1, localhost, 0.0.0.0 or ::1. Bytes of one direction arrive in
// order, after delays, in pieces; a pipe holds at most some ten KiB that the receiver has not taken, so that back-pressure works. A killed process's peers see the
// end of the stream or a reset; those of a machine without power notice within seconds. Partitioned bytes wait (and arrive when it heals), connects time out.
#ifndef SIM_SIM_NET_H
#define SIM_SIM_NET_H

#include "sim/sim.h"

// Cuts (or mends) the network between two nodes, both directions.
void ox_sim_net_partition(struct ox_sim_node *a, struct ox_sim_node *b, bool cut);
// Mends every partition of the world.
void ox_sim_net_heal(struct ox_sim *sim);
// Breaks every connection between two nodes (b NULL: all of a's): both ends see DISCONNECTED.
void ox_sim_net_reset(struct ox_sim_node *a, struct ox_sim_node *b);
// Sets the one-way delay of deliveries, ns. Default 50 to 500 us.
void ox_sim_net_set_delay(struct ox_sim *sim, uint64_t min_ns, uint64_t max_ns);

#endif
