/* What softcuda is told from outside: the environment's SOFTCUDA_*, and softcuda_set. */
#include "options.h"
#include "parse.h"

sc_options sc_option;

/* Guards the commands and their counts; the other options are single words. */
static pthread_mutex_t commands_lock = PTHREAD_MUTEX_INITIALIZER;

static bool read_switch(const char *text, bool *out) {
  if (strcmp(text, "0") && strcmp(text, "1")) return false;
  *out = text[0] == '1';
  return true;
}

static bool set_capability(const char *text) {
  return parse_capability(text, &sc_option.capability);
}

static bool set_version(const char *text) { return parse_version(text, &sc_option.driver_version); }

static bool set_devices(const char *text) {
  return parse_int(text, 0, SC_MAX_DEVICES, &sc_option.devices);
}

static bool set_memory(const char *text) { return parse_bytes(text, &sc_option.memory); }

static bool set_multiprocessors(const char *text) {
  return parse_int(text, 1, 1024, &sc_option.multiprocessors);
}

/* Guide, "Technical Specifications per Compute Capability": a block has at most 1024 threads. */
static bool set_block(const char *text) {
  return parse_int(text, 1, 1024, &sc_option.block_limit);
}

static bool set_shared(const char *text) { return parse_bytes(text, &sc_option.shared_limit); }

static bool set_order(const char *text) {
  if (!strcmp(text, "ascending")) {
    sc_option.order = SC_ASCENDING;
  } else if (!strcmp(text, "descending")) {
    sc_option.order = SC_DESCENDING;
  } else {
    if (!parse_number(text, 0, UINT64_MAX, &sc_option.seed)) return false;
    sc_option.order = SC_PERMUTED;
  }
  return true;
}

static bool set_sanitize(const char *text) { return read_switch(text, &sc_option.sanitize); }

static bool set_count(const char *text) { return read_switch(text, &sc_option.count); }

static bool set_leaks(const char *text) { return read_switch(text, &sc_option.leaks); }

static bool set_timeout(const char *text) {
  char *end;
  double seconds = strtod(text, &end);
  if (end == text || *end || !(seconds >= 0 && seconds < 1e9)) return false;
  sc_option.kernel_timeout = seconds;
  return true;
}

static bool set_log(const char *text) {
  if (strlen(text) >= sizeof sc_option.log) return false;
  strcpy(sc_option.log, text);
  return true;
}

/* The commands and what follows each of their words. */
static const struct {
  const char *word;
  enum sc_command_what what;
  enum { BYTES, KERNEL, MICROSECONDS, STREAM_AND_MICROSECONDS } rest;
} words[] = {
    {"oom", SC_OUT_OF_MEMORY, BYTES}, {"illegal", SC_ILLEGAL, KERNEL},
    {"lost", SC_LOST, KERNEL},        {"hang", SC_HANG, KERNEL},
    {"slow_copy", SC_SLOW_COPY, MICROSECONDS},
    {"delay", SC_DELAY, STREAM_AND_MICROSECONDS},
};

enum { LONGEST_DELAY = 3600 * 1000 * 1000u }; /* microseconds: an hour */

/* "0:500" is the default stream and 500 microseconds, "*:500" means all streams. */
static bool read_delay(char *rest, sc_command *command) {
  char *microseconds = strchr(rest, ':');
  if (!microseconds) return false;
  *microseconds++ = 0;
  command->value2 = UINT64_MAX;
  return (!strcmp(rest, "*") || parse_number(rest, 0, UINT64_MAX - 1, &command->value2)) &&
         parse_number(microseconds, 0, LONGEST_DELAY, &command->value);
}

/* One command: WORD, WORD@N, WORD:REST or WORD@N:REST. */
static bool read_command(const char *text, sc_command *command) {
  char copy[256];
  if (strlen(text) >= sizeof copy) return false;
  strcpy(copy, text);
  char *rest = strchr(copy, ':');
  if (rest) *rest++ = 0;
  char *nth = strchr(copy, '@');
  if (nth) *nth++ = 0;
  *command = (sc_command){0};
  if (nth && !parse_number(nth, 1, UINT64_MAX, &command->nth)) return false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(copy, words[i].word)) continue;
    command->what = words[i].what;
    switch (words[i].rest) {
    case BYTES: return !rest || parse_bytes(rest, &command->value);
    case KERNEL:
      if (rest && strlen(rest) >= sizeof command->match) return false;
      if (rest) strcpy(command->match, rest);
      return true;
    case MICROSECONDS: return rest && parse_number(rest, 0, LONGEST_DELAY, &command->value);
    case STREAM_AND_MICROSECONDS: return rest && read_delay(rest, command);
    }
  }
  return false;
}

/* A comma-separated list of commands replaces those that were there. */
static bool set_faults(const char *text) {
  sc_command commands[sizeof sc_option.commands / sizeof *sc_option.commands];
  int count = 0;
  char *copy = strdup(text), *at;
  bool good = true;
  for (char *word = strtok_r(copy, ", ", &at); word && good; word = strtok_r(NULL, ", ", &at))
    good = count < (int)(sizeof commands / sizeof *commands) &&
           read_command(word, &commands[count++]);
  free(copy);
  if (!good) return false;
  pthread_mutex_lock(&commands_lock);
  if (count) memcpy(sc_option.commands, commands, (size_t)count * sizeof *commands);
  sc_option.command_count = count;
  pthread_mutex_unlock(&commands_lock);
  return true;
}

static const struct option {
  const char *name;
  bool (*set)(const char *text);
  const char *allowed;
} options[] = {
    {"devices", set_devices, "0 to 16"},
    {"cc", set_capability, "a compute capability such as 8.0"},
    {"version", set_version, "a version of CUDA such as 12.8"},
    {"memory", set_memory, "bytes, as 1000000, 512M or 4G"},
    {"sms", set_multiprocessors, "1 to 1024"},
    {"block", set_block, "1 to 1024 threads"},
    {"shared", set_shared, "bytes, as 49152 or 48K"},
    {"order", set_order, "ascending, descending, or a number that seeds a permutation"},
    {"sanitize", set_sanitize, "0 or 1"},
    {"count", set_count, "0 or 1"},
    {"timeout", set_timeout, "seconds, 0 for none"},
    {"leaks", set_leaks, "0 or 1"},
    {"log", set_log, "a path of at most 1023 bytes"},
    {"faults", set_faults,
     "a list of oom[@N][:BYTES], illegal[@N][:KERNEL], lost[@N][:KERNEL], hang[@N][:KERNEL], "
     "slow_copy[@N]:MICROSECONDS, delay[@N]:STREAM:MICROSECONDS"},
};

static void read_variable(const struct option *option) {
  char variable[32] = "SOFTCUDA_";
  size_t at = strlen(variable);
  for (const char *c = option->name; *c; c++) variable[at++] = (char)toupper((unsigned char)*c);
  const char *text = getenv(variable);
  if (!text || !*text || option->set(text) || sc_option.complaint[0]) return;
  snprintf(sc_option.complaint, sizeof sc_option.complaint, "%s=%.60s means nothing; allowed: %s",
           variable, text, option->allowed);
}

/* The device that an entry of CUDA_VISIBLE_DEVICES means: its number, or the beginning of its UUID
 * where only one begins so; -1 for any other text. */
static int device_named(const char *entry, int devices) {
  int found = -1;
  if (parse_int(entry, 0, devices - 1, &found)) return found;
  if (strncmp(entry, "GPU-", 4)) return -1;
  for (int device = 0; device < devices; device++) {
    char uuid[SC_UUID_ROOM];
    sc_uuid_text(device, uuid);
    if (strncmp(uuid, entry, strlen(entry))) continue;
    if (found >= 0) return -1;
    found = device;
  }
  return found;
}

/* Guide, "CUDA Environment Variables": only those listed, in that order; "if one of the indices is
 * invalid, only the devices whose index precedes the invalid index are visible". A device that is
 * named twice makes the list invalid as a whole. */
static void hide_devices(const char *visible) {
  int all = sc_option.devices, count = 0;
  for (int i = 0; i < all; i++) sc_option.physical[i] = i;
  if (!visible) return;
  char *copy = strdup(visible), *at;
  uint32_t seen = 0;
  for (char *entry = strtok_r(copy, ",", &at); entry; entry = strtok_r(NULL, ",", &at)) {
    int device = device_named(entry + strspn(entry, " "), all);
    if (device < 0) break;
    if (seen >> device & 1) count = -1;
    if (count < 0) break;
    seen |= 1u << device;
    sc_option.physical[count++] = device;
  }
  free(copy);
  sc_option.devices = count < 0 ? 0 : count;
}

void sc_options_read(void) {
  sc_option = (sc_options){
      .devices = 1,
      .capability = 80,
      .driver_version = CUDA_VERSION,
      .memory = 4ull << 30,
      .multiprocessors = 4,
      .block_limit = 1024,
      .shared_limit = 48 << 10,
  };
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) read_variable(&options[i]);
  hide_devices(getenv("CUDA_VISIBLE_DEVICES"));
}

int softcuda_set(const char *name, const char *text) {
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    if (!strcmp(name, options[i].name)) return options[i].set(text);
  return false;
}

static bool applies(const sc_command *command, const char *name, uint64_t value) {
  switch (command->what) {
  case SC_OUT_OF_MEMORY: return value >= command->value;
  case SC_DELAY: return command->value2 == UINT64_MAX || command->value2 == value;
  case SC_SLOW_COPY: return true;
  default: return !command->match[0] || (name && strstr(name, command->match));
  }
}

sc_command *sc_commanded(enum sc_command_what what, const char *name, uint64_t value) {
  sc_command *now = NULL;
  pthread_mutex_lock(&commands_lock);
  for (int i = 0; i < sc_option.command_count; i++) {
    sc_command *command = &sc_option.commands[i];
    if (command->what != what || !applies(command, name, value)) continue;
    command->seen++;
    if (!now && (!command->nth || command->seen == command->nth)) now = command;
  }
  pthread_mutex_unlock(&commands_lock);
  return now;
}
