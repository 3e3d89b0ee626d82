// bookie_clusters.c - oxbowctl bookie-clusters: the verbs that are more than one request.
#include "oxbowctl/bookie_clusters.h"

#include <string.h>

#include "base/mem.h"

int ctl_clusters_ask(struct ctl *ctl, const char *path, const char *what, json_t **ret)
{
    OX_CLEANUP(ox_free_ptr)
    char *whole = ox_asprintf("/admin/v2/bookie-clusters%s", path);
    return ctl_get(ctl, whole, what, ret);
}

int ctl_clusters_unregister(struct ctl *ctl)
{
    json_t *entry = NULL, *answer = NULL;
    const char *name = ctl_text(ctl, "NAME");
    struct ox_str path = {0};
    ctl_path_add(&path, name);
    int status = CTL_DONE;
    if (!ctl->print_request) // where it was is not known any more afterwards
        status = ctl_clusters_ask(ctl, ox_str_get(&path), name, &entry);
    if (status == CTL_DONE)
        status = ctl_row_ask(ctl, &answer);
    const char *uri = json_string_value(json_object_get(entry, "metadataServiceUri"));
    if (answer && !ctl->json)
        printf("%s: unregistered; the broker does not touch %s any more: it can be deleted\n", name,
               uri ? uri : "its storage");
    json_decref(entry);
    json_decref(answer);
    ox_str_fini(&path);
    return status;
}

// Gives an order; with --wait, watches it until a stage is over.
static int order_run(struct ctl *ctl, const char *until)
{
    json_t *answer;
    int status = ctl_row_ask(ctl, &answer);
    if (!answer)
        return status;
    if (ctl->json)
        ctl_print_json(answer);
    else
        ctl_show_order(answer);
    fflush(stdout);
    if (ctl_flag(ctl, "--wait"))
        status = ctl_progress_run(ctl, until, json_string_value(json_object_get(answer, "switchId")));
    else if (!ctl->json)
        printf("'oxbowctl bookie-clusters watch' shows how it goes on\n");
    json_decref(answer);
    return status;
}

int ctl_clusters_switch(struct ctl *ctl)
{
    return order_run(ctl, "METADATA_MOVED");
}

int ctl_clusters_move_data(struct ctl *ctl)
{
    return order_run(ctl, "DATA_MOVED");
}

int ctl_clusters_watch(struct ctl *ctl)
{
    return ctl_progress_run(ctl, NULL, NULL);
}
