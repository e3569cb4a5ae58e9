/* What refused.c asks of entry.c; without cuda.h, which has other types for these functions. */
#pragma once

/* Answers a call of a function that softcuda does not have, and says its name once. */
int sc_refuse(const char *symbol);
