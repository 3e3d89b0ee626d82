// table_memory.h - a ledger table's key-value store in memory, for tests: what is committed outlives the process that committed it, nothing else does.
#ifndef LEDGER_STORE_TABLE_MEMORY_H
#define LEDGER_STORE_TABLE_MEMORY_H

#include "ledger/store/table.h"

struct ox_memory_table;

// A fresh, empty content; it stands for the file on the disk.
struct ox_memory_table *ox_memory_table_new(void);
void ox_memory_table_free(struct ox_memory_table *m);
// A source over the content: every open sees what was committed before.
struct ox_table_source ox_memory_table_source(struct ox_memory_table *m);
// The next n commits fail with err and change nothing.
void ox_memory_table_fail(struct ox_memory_table *m, uint32_t n, enum ox_err err);

#endif
