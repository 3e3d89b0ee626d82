// reports.h - crash reports that earlier processes have left in the data directory.
#ifndef OXBOWD_REPORTS_H
#define OXBOWD_REPORTS_H

#include "base/log.h"

#define REPORTS_KEPT 10u // a broker that crashes again and again does not fill the disk

// Says in one line of the log how many there are and where the newest is, and deletes the oldest beyond REPORTS_KEPT. To be called before the loop runs: it blocks.
void reports_tell(struct ox_log *log, const char *dir);

#endif
