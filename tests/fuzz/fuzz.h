// fuzz.h - the one function every fuzz source defines: libFuzzer calls it, or the corpus replayer.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Runs the code under test on one input; `data` is borrowed. Always 0: a finding is a crash or a failed assertion.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
