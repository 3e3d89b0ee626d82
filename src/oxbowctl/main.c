// main.c - oxbowctl: the table of commands, the options before them, help.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/version.h"
#include "oxbowctl/ctl.h"

static const struct ctl_command commands[] = {
    {"produce", NULL, "TOPIC [-m TEXT]... [--key KEY] [--property K=V]... [--batch N] [--compression NAME] [--name NAME]",
     "send lines of standard input, or the texts of -m, as messages",
     "  -m TEXT             a message (may be given again); without it each line of standard input is one\n"
     "  --key KEY           the messages' key\n"
     "  --property K=V      a property of each message (may be given again)\n"
     "  --batch N           up to N messages in one entry\n"
     "  --compression NAME  none, lz4, zlib, zstd or snappy\n"
     "  --name NAME         the producer's name\n"
     "Ends when every message is stored. With -o json it prints the id of each.\n",
     ctl_produce},
    {"consume", NULL, "TOPIC [--subscription NAME] [--from earliest|latest] [--count N] [--follow]",
     "print messages, one a line, until the end of the topic",
     "  --subscription NAME  consume as this subscription and acknowledge what was printed; without it nothing is "
     "kept\n"
     "  --from WHERE         earliest (default) or latest: where to start, or a new subscription starts\n"
     "  --count N            end after N messages\n"
     "  --follow             wait for more instead of ending at the end\n"
     "With -o json a line has id, key, properties, publishTime and payload.\n",
     ctl_consume},
    {"topics", "stats", "TOPIC", "figures of a topic and its subscriptions", "", ctl_topics_stats},
    {"topics", "list", "TENANT/NAMESPACE", "topics of a namespace", "", ctl_topics_list},
    {"topics", "unload", "TOPIC", "close a topic; its clients connect again", "", ctl_topics_unload},
    {"brokers", "health", "", "is the broker well?", "", ctl_brokers_health},
    {"bookie-clusters", "list", "", "the registered bookie clusters", "", ctl_clusters_list},
    {"bookie-clusters", "get", "NAME", "one bookie cluster", "", ctl_clusters_get},
    {"bookie-clusters", "register", "NAME --metadata-service-uri URI [--status STATUS]", "make a bookie cluster known",
     "  --metadata-service-uri URI  where it is, such as embedded:/disk2/oxbow; an absolute path, seen from the "
     "broker\n"
     "  --status STATUS             STANDBY (default), or what it was when the entry is being repaired\n",
     ctl_clusters_register},
    {"bookie-clusters", "unregister", "NAME", "forget a bookie cluster that nothing needs any more", "",
     ctl_clusters_unregister},
    {"bookie-clusters", "precheck", "NAME", "could a switch to it succeed? (exit status 1: no)", "", ctl_clusters_precheck},
    {"bookie-clusters", "plan", "NAME [--rate 100M]", "what moving everything there would take; changes nothing",
     "  --rate SIZE  bytes a second to reckon with; without it the measured rate\n", ctl_clusters_plan},
    {"bookie-clusters", "switch", "NAME [--wait] [--supersede]", "make it the one that takes new data, while all goes on",
     "  --wait       show how it goes on, until cursors and schemas have moved too (METADATA_MOVED)\n"
     "  --supersede  even though another switch is not over\n"
     "To the active one: what had failed is tried again.\n",
     ctl_clusters_switch},
    {"bookie-clusters", "rollback", "[--wait]", "switch back to the one before", "", ctl_clusters_rollback},
    {"bookie-clusters", "status", "", "which one is active, and how far a switch is", "", ctl_clusters_status},
    {"bookie-clusters", "watch", "",
     "show how a switch goes on until it is over (exit status 1: with failures)", "Ctrl-C ends the watching, not the switch. With -o json: the status, a line for each change and at least every 5 s.\n",
     ctl_clusters_watch},
    {"bookie-clusters", "set-read-mode", "MODE", "which bookie clusters may be read",
     "  DUAL_READ         all (the ordinary state)\n"
     "  OLD_CLUSTER_ONLY  nothing is read from the active one\n"
     "  NEW_CLUSTER_ONLY  only the active one is read: what would happen if the others were gone\n",
     ctl_clusters_read_mode},
    {"bookie-clusters", "pause", "", "let the move rest", "", ctl_clusters_pause},
    {"bookie-clusters", "resume", "", "let it go on", "", ctl_clusters_resume},
    {"bookie-clusters", "abort", "", "end the move; new data stays where it goes now, older data where it is", "",
     ctl_clusters_abort},
    {"bookie-clusters", "move-data", "NAME [--wait]", "move older data too, into the active one (NAME, to be sure)",
     "  --wait  show how it goes on, until nothing is left elsewhere (DATA_MOVED)\n", ctl_clusters_move_data},
    {"bookie-clusters", "get-target", "NAME", "where new data of a namespace or topic goes",
     "NAME is TENANT/NAMESPACE or a topic. Example: oxbowctl bookie-clusters get-target public/default\n",
     ctl_clusters_get_target},
    {"bookie-clusters", "set-target", "NAME --target CLUSTER", "give a namespace or topic a bookie cluster of its own",
     "  --target CLUSTER  new data goes there, whichever is active; move-data takes the older there\n"
     "NAME is TENANT/NAMESPACE or a topic, whose own target wins over its namespace's.\n"
     "Example: oxbowctl bookie-clusters set-target persistent://public/default/t --target big\n",
     ctl_clusters_set_target},
    {"bookie-clusters", "remove-target", "NAME", "let it follow its namespace, or the active bookie cluster, again",
     "NAME is TENANT/NAMESPACE or a topic. Example: oxbowctl bookie-clusters remove-target public/default\n",
     ctl_clusters_remove_target},
    {"bookie-clusters", "throttle", "[--bytes 50M] [--ops N]", "how fast data may be moved; at once, and kept",
     "  --bytes SIZE  bytes a second; 0: no limit\n"
     "  --ops N       entries a second; 0: no limit\n",
     ctl_clusters_throttle},
    {"bookie-clusters", "inventory", "", "how much is in which bookie cluster", "", ctl_clusters_inventory},
    {"bookie-clusters", "failures", "", "what could not be moved, and why", "", ctl_clusters_failures},
    {"bookie-clusters", "verify", "NAME", "read all that was moved and compare it (exit status 1: something differs)",
     "", ctl_clusters_verify},
    {"bookie-clusters", "safe-to-release", "NAME", "may it be switched off? (exit status 1: no)", "",
     ctl_clusters_safe_to_release},
    {"bookie-clusters", "list-cleanup-targets", "[--src-cluster NAME]", "copies left behind that a cleanup deletes", "",
     ctl_clusters_cleanup_targets},
    {"bookie-clusters", "cleanup", "[--dry-run] [--src-cluster NAME] [--max-deletions N] [--force]",
     "delete copies left behind whose time is up",
     "  --dry-run           only say what would be deleted\n"
     "  --src-cluster NAME  only in that bookie cluster\n"
     "  --max-deletions N   no more than N\n"
     "  --force             also those whose time is not up: a switch back must copy again then\n",
     ctl_clusters_cleanup},
    {"bookie-clusters", "close-client", "NAME", "let go of a bookie cluster that nobody reads", "", ctl_clusters_close_client},
};

static void print_help(FILE *to)
{
    fputs("usage: oxbowctl [--url URL] [--service-url URL] [-o table|json] NOUN [VERB] ...\n"
          "\n"
          "  --url URL          the broker's REST door (http://127.0.0.1:8080)\n"
          "  --service-url URL  its door for clients (pulsar://127.0.0.1:6650)\n"
          "  -o FORMAT          table (default) or json\n"
          "\n",
          to);
    for (size_t i = 0; i < OX_COUNT(commands); i++) {
        OX_CLEANUP(ox_free_ptr)
        char *name = ox_asprintf("%s %s", commands[i].noun, commands[i].verb ? commands[i].verb : "");
        fprintf(to, "  %-38s %s\n", name, commands[i].summary);
    }
    fputs("\noxbowctl NOUN [VERB] --help tells more. Exit status: 0 done, 1 failed, 2 wrong usage.\n", to);
}

static bool command_matches(const struct ctl_command *c, char **args, int count)
{
    if (count < 1 || strcmp(c->noun, args[0]) != 0)
        return false;
    return !c->verb || (count > 1 && strcmp(c->verb, args[1]) == 0);
}

static const struct ctl_command *find_command(char **args, int count)
{
    for (size_t i = 0; i < OX_COUNT(commands); i++)
        if (command_matches(&commands[i], args, count))
            return &commands[i];
    return NULL;
}

// The noun is known, the verb is not: names the verbs.
static int wrong_command(char **args, int count)
{
    bool noun = false;
    for (size_t i = 0; i < OX_COUNT(commands) && count > 0; i++)
        if (strcmp(commands[i].noun, args[0]) == 0) {
            if (!noun && count > 1)
                fprintf(stderr, "oxbowctl: %s has no verb '%s':\n", args[0], args[1]);
            else if (!noun)
                fprintf(stderr, "oxbowctl: %s needs a verb:\n", args[0]);
            noun = true;
            ctl_usage(&commands[i], false);
        }
    if (!noun && count > 0)
        fprintf(stderr, "oxbowctl: there is no command '%s'\n", args[0]);
    if (!noun)
        print_help(stderr);
    return CTL_USAGE;
}

// Puts the options that stand before the noun behind the command's words, where ctl_parse reads all of them.
static char **rotate(int argc, char **argv, int *ret_first)
{
    int first = 1;
    while (first < argc && argv[first][0] == '-')
        first +=
            strchr(argv[first], '=') || strcmp(argv[first], "--help") == 0 || strcmp(argv[first], "--version") == 0 ? 1 : 2;
    if (first > argc)
        first = argc;
    char **words = ox_calloc((size_t)argc + 1, sizeof *words);
    int at = 0;
    for (int i = first; i < argc; i++)
        words[at++] = argv[i];
    *ret_first = at;
    for (int i = 1; i < first; i++)
        words[at++] = argv[i];
    return words;
}

static int run(char **words, int count, int command_words)
{
    struct ctl ctl = {.url = "http://127.0.0.1:8080", .service_url = "pulsar://127.0.0.1:6650"};
    ctl.command = find_command(words, command_words);
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
        if (strcmp(words[i], "--version") == 0)
            return printf("oxbowctl %s\n", OX_VERSION) < 0;
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) {
            if (ctl.command)
                ctl_usage(ctl.command, true);
            else
                print_help(stdout);
            return CTL_DONE;
        }
    }
    if (!ctl.command)
        return wrong_command(words, command_words);
    int used = ctl.command->verb ? 2 : 1;
    ctl.args = words + used;
    ctl.arg_count = count - used;
    return ctl.command->run(&ctl);
}

int main(int argc, char **argv)
{
    int command_words;
    char **words = rotate(argc, argv, &command_words);
    int status = run(words, argc - 1, command_words);
    ox_free(words);
    if (fflush(stdout) != 0 && status == CTL_DONE)
        status = ctl_fail("standard output: write failed");
    return status;
}
