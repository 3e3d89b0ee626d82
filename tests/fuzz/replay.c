// replay.c - runs a fuzz target over every file of a corpus folder, for builds without libFuzzer.
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    uint8_t *data = malloc(1 << 20);
    size_t size = data ? fread(data, 1, 1 << 20, file) : 0;
    fclose(file);
    // An exact copy, so that a read past the end is seen by the address sanitizer.
    uint8_t *exact = malloc(size ? size : 1);
    if (data == NULL || exact == NULL) {
        abort();
    }
    memcpy(exact, data, size);
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

static int replay_folder(const char *folder, int *count)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        perror(folder);
        return 1;
    }
    int failed = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        failed |= replay_file(path);
        (*count)++;
    }
    closedir(dir);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0, count = 0;
    for (int i = 1; i < argc; i++) {
        failed |= replay_folder(argv[i], &count);
    }
    if (count == 0) {
        fprintf(stderr, "replay: no corpus files found\n");
        return 1;
    }
    return failed;
}
