#pragma once

// What the C programs of these tests share: a check that ends the program, and a check that a call
// went well.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define CHECK_OK(error)                                                         \
  do {                                                                          \
    if ((error) != NULL) {                                                      \
      fprintf(stderr, "%s:%d: answered \"%s\"\n", __FILE__, __LINE__, (error)); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)
