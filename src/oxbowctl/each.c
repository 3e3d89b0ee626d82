// each.c - verbs that ask route after route of their row, and the list of clusters.
#include <string.h>

#include "base/mem.h"
#include "oxbowctl/ctl.h"

// Puts "(*)" behind the broker's own cluster.
static json_t *names_marked(const json_t *names, const char *own)
{
    json_t *marked = json_array();
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        bool is_own = own && name && strcmp(own, name) == 0;
        json_array_append_new(marked, json_sprintf("%s%s", name ? name : "-", is_own ? "(*)" : ""));
    }
    return marked;
}

int ctl_cluster_names(struct ctl *ctl)
{
    json_t *names, *settings = NULL, *marked = NULL;
    int status = ctl_row_ask(ctl, &names);
    if (status == CTL_DONE && ctl_flag(ctl, "-c"))
        status = ctl_get(ctl, "/admin/v2/brokers/configuration/runtime", "the broker's cluster", &settings);
    if (settings)
        marked = names_marked(names, json_string_value(json_object_get(settings, "clusterName")));
    if (status == CTL_DONE && names)
        status = ctl_row_show(ctl, marked ? marked : names);
    json_decref(names);
    json_decref(settings);
    json_decref(marked);
    return status;
}

// The row's routes ask for its words one by one: the first for the first option, and so on.
int ctl_each_option(struct ctl *ctl)
{
    int status = CTL_DONE;
    size_t option = 0;
    for (size_t i = 0; i < ctl->row->word_count && status == CTL_DONE; i++) {
        const struct ctl_word *w = &ctl->row->words[i];
        json_t *answer = NULL;
        if (w->positional || option >= ctl->row->route_count)
            continue;
        const struct ctl_route *route = &ctl->row->routes[option++];
        if (!ctl->values[i])
            continue;
        struct ctl_request request = {.method = route->method, .body = json_incref(ctl->values[i])};
        OX_CLEANUP(ox_free_ptr)
        char *path = ctl_path_make(ctl, route->path);
        ox_str_adds(&request.path, path ? path : "");
        status = path ? ctl_request_send(ctl, &request, &answer) : CTL_USAGE;
        json_decref(answer);
        ctl_request_fini(&request);
    }
    return status;
}

// The answers of all of the row's routes as one object, each named as the end of its path.
int ctl_each_route(struct ctl *ctl)
{
    json_t *all = json_object();
    int status = CTL_DONE;
    OX_CLEANUP(ox_free_ptr)
    char *what = ctl_subject(ctl);
    for (size_t i = 0; i < ctl->row->route_count && status == CTL_DONE; i++) {
        json_t *answer = NULL;
        OX_CLEANUP(ox_free_ptr)
        char *path = ctl_path_make(ctl, ctl->row->routes[i].path);
        status = path ? ctl_get(ctl, path, what, &answer) : CTL_USAGE;
        if (answer)
            json_object_set_new(all, strrchr(path, '/') + 1, answer);
    }
    if (status == CTL_DONE && json_object_size(all))
        status = ctl_row_show(ctl, all);
    json_decref(all);
    return status;
}
