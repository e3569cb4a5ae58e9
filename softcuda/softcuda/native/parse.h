/* What the driver and NVML both know: how values of SOFTCUDA_* are read, and devices'
 * identities. */
#pragma once
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *out) {
  if (!isdigit((unsigned char)text[0])) return false;
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno || *end || number < least || number > most) return false;
  *out = number;
  return true;
}

static inline bool parse_int(const char *text, int least, int most, int *out) {
  uint64_t number;
  if (!parse_number(text, (uint64_t)least, (uint64_t)most, &number)) return false;
  *out = (int)number;
  return true;
}

/* "4G", "512M", "48K" or "1000000": bytes. */
static inline bool parse_bytes(const char *text, uint64_t *out) {
  static const char units[] = "KMGT";
  char digits[32];
  size_t length = strlen(text);
  if (!length || length >= sizeof digits) return false;
  memcpy(digits, text, length + 1);
  const char *unit = strchr(units, toupper((unsigned char)digits[length - 1]));
  int shift = unit ? 10 * (int)(unit - units + 1) : 0;
  if (unit) digits[length - 1] = 0;
  uint64_t number;
  if (!parse_number(digits, 1, (UINT64_MAX >> 1) >> shift, &number)) return false;
  *out = number << shift;
  return true;
}

static inline bool parse_dotted(const char *text, int *major, int *minor) {
  char rest;
  return sscanf(text, "%d.%d%c", major, minor, &rest) == 2 && *major >= 0 && *minor >= 0;
}

/* "8.0" and "80" are compute capability 8.0. */
static inline bool parse_capability(const char *text, int *out) {
  int major, minor;
  if (!strchr(text, '.')) return parse_int(text, 50, 999, out);
  if (!parse_dotted(text, &major, &minor) || major < 5 || major > 99 || minor > 9) return false;
  *out = 10 * major + minor;
  return true;
}

/* "12.8" and "12080" are what a driver for CUDA 12.8 tells (Driver API, cuDriverGetVersion). */
static inline bool parse_version(const char *text, int *out) {
  int major, minor;
  if (!strchr(text, '.')) return parse_int(text, 1000, 99990, out);
  if (!parse_dotted(text, &major, &minor) || major < 1 || major > 99 || minor > 99) return false;
  *out = 1000 * major + 10 * minor;
  return true;
}

/* "GPU-50505050-5050-5050-5050-505050505050", and 51 for the next device: as NVML writes the bytes
 * that cuDeviceGetUuid gives. */
enum { SC_UUID_FIRST = 0x50, SC_UUID_ROOM = 48, SC_PCI_BUS = 0x50 };

static inline void sc_uuid_text(int device, char out[SC_UUID_ROOM]) {
  char b[3];
  snprintf(b, sizeof b, "%02x", (SC_UUID_FIRST + device) & 0xFF);
  snprintf(out, SC_UUID_ROOM, "GPU-%s%s%s%s-%s%s-%s%s-%s%s-%s%s%s%s%s%s", b, b, b, b, b, b, b, b,
           b, b, b, b, b, b, b, b);
}
