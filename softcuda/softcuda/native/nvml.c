/* A look-alike of libnvidia-ml.so.1: the same devices that the driver shows (SOFTCUDA_DEVICES, _CC,
 * _MEMORY, _SMS and _VERSION). NVML does not follow CUDA_VISIBLE_DEVICES. Clocks, temperatures,
 * power and use are not supported: a device in software has none, and no figure should look like
 * one.
 *
 * NVIDIA's wheels bring no nvml.h, so the few types of it that are needed stand here ("NVML API
 * Reference Guide"). */
#include "parse.h"

#define API __attribute__((visibility("default")))

enum { MOST_DEVICES = 16 };

typedef enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
} nvmlReturn_t;

typedef struct device {
  int index;
} *nvmlDevice_t;

static struct device devices[MOST_DEVICES];
static int device_count, capability, multiprocessors, version, initialised;
static uint64_t memory;

#define ENTER                                                                 \
  do {                                                                        \
    if (!initialised) return NVML_ERROR_UNINITIALIZED;                        \
  } while (0)

static bool is_device(nvmlDevice_t device) {
  return device >= devices && device < devices + device_count;
}

#define NEED(condition)                                                       \
  do {                                                                        \
    if (!initialised) return NVML_ERROR_UNINITIALIZED;                        \
    if (!(condition)) return NVML_ERROR_INVALID_ARGUMENT;                     \
  } while (0)

static nvmlReturn_t write_text(char *out, unsigned room, const char *text) {
  if (strlen(text) >= room) return NVML_ERROR_INSUFFICIENT_SIZE;
  strcpy(out, text);
  return NVML_SUCCESS;
}

/* ---- initialisation ------------------------------------------------------------------------ */

static const char *variable(const char *name) {
  const char *text = getenv(name);
  return text ? text : "";
}

/* What means nothing keeps its default here: cuInit is the one that complains. */
static void read_options(void) {
  if (!parse_int(variable("SOFTCUDA_DEVICES"), 0, MOST_DEVICES, &device_count)) device_count = 1;
  if (!parse_capability(variable("SOFTCUDA_CC"), &capability)) capability = 80;
  if (!parse_int(variable("SOFTCUDA_SMS"), 1, 1024, &multiprocessors)) multiprocessors = 4;
  if (!parse_version(variable("SOFTCUDA_VERSION"), &version)) version = 13000;
  if (!parse_bytes(variable("SOFTCUDA_MEMORY"), &memory)) memory = 4ull << 30;
  for (int i = 0; i < MOST_DEVICES; i++) devices[i].index = i;
}

API nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  if (!initialised++) read_options();
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

API nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

API nvmlReturn_t nvmlShutdown(void) {
  ENTER;
  initialised--;
  return NVML_SUCCESS;
}

API const char *nvmlErrorString(nvmlReturn_t error) {
  switch (error) {
  case NVML_SUCCESS: return "Success";
  case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
  case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
  case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
  case NVML_ERROR_NOT_FOUND: return "Not Found";
  case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
  default: return "Unknown Error";
  }
}

/* ---- the system ---------------------------------------------------------------------------- */

API nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned room) {
  NEED(out);
  return write_text(out, room, "softcuda");
}

API nvmlReturn_t nvmlSystemGetNVMLVersion(char *out, unsigned room) {
  NEED(out);
  return write_text(out, room, "softcuda");
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *out) {
  NEED(out);
  *out = version;
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *out) {
  return nvmlSystemGetCudaDriverVersion_v2(out);
}

API nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *out, unsigned room) {
  NEED(out && room);
  char path[40];
  snprintf(path, sizeof path, "/proc/%u/comm", pid);
  FILE *file = fopen(path, "re");
  if (!file) return NVML_ERROR_NOT_FOUND;
  char *line = fgets(out, (int)room, file);
  fclose(file);
  if (!line) return NVML_ERROR_NOT_FOUND;
  out[strcspn(out, "\n")] = 0;
  return NVML_SUCCESS;
}

/* ---- finding a device ---------------------------------------------------------------------- */

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *out) {
  NEED(out);
  *out = (unsigned)device_count;
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCount(unsigned *out) { return nvmlDeviceGetCount_v2(out); }

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out) {
  NEED(out && index < (unsigned)device_count);
  *out = &devices[index];
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *out) {
  return nvmlDeviceGetHandleByIndex_v2(index, out);
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out) {
  NEED(uuid && out);
  for (int i = 0; i < device_count; i++) {
    char text[SC_UUID_ROOM];
    sc_uuid_text(i, text);
    if (strcmp(uuid, text)) continue;
    *out = &devices[i];
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

static void write_bus_id(const struct device *device, int domain_digits, char *out, size_t room) {
  snprintf(out, room, "%0*X:%02X:00.0", domain_digits, 0u, SC_PCI_BUS + (unsigned)device->index);
}

/* "domain:bus:device.function", where the domain has four digits or eight. */
API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *out) {
  NEED(id && out);
  unsigned domain, bus, slot, function = 0;
  if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
    return NVML_ERROR_INVALID_ARGUMENT;
  unsigned index = bus - SC_PCI_BUS;
  if (domain || slot || function || index >= (unsigned)device_count) return NVML_ERROR_NOT_FOUND;
  *out = &devices[index];
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *out) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, out);
}

/* ---- what a device is ---------------------------------------------------------------------- */

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *out, unsigned room) {
  NEED(is_device(device) && out);
  return write_text(out, room, "softcuda");
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned room) {
  NEED(is_device(device) && out);
  char text[SC_UUID_ROOM];
  sc_uuid_text(device->index, text);
  return write_text(out, room, text);
}

API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *out) {
  NEED(is_device(device) && out);
  *out = (unsigned)device->index;
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *out) {
  return nvmlDeviceGetIndex(device, out);
}

API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
  NEED(is_device(device) && major && minor);
  *major = capability / 10;
  *minor = capability % 10;
  return NVML_SUCCESS;
}

/* Guide, "Throughput of Native Arithmetic Instructions": float32 lanes of a multiprocessor. */
API nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned *out) {
  NEED(is_device(device) && out);
  bool narrow = capability == 60 || (capability >= 70 && capability <= 80);
  *out = (unsigned)multiprocessors * (narrow ? 64 : 128);
  return NVML_SUCCESS;
}

/* nvml.h, NVML_DEVICE_ARCH_... */
API nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *out) {
  NEED(is_device(device) && out);
  static const struct {
    int from;
    unsigned architecture;
  } known[] = {{100, 10}, {90, 9}, {89, 8}, {80, 7}, {75, 6}, {70, 5}, {60, 4}, {0, 3}};
  int i = 0;
  while (capability < known[i].from) i++;
  *out = known[i].architecture;
  return NVML_SUCCESS;
}

typedef struct {
  unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
  unsigned version;
  unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

/* Of all processes: what is in use is known to the driver of each alone, so none is said to be. */
API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out) {
  NEED(is_device(device) && out);
  *out = (nvmlMemory_t){.total = memory, .free = memory};
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out) {
  NEED(is_device(device) && out);
  *out = (nvmlMemory_v2_t){.version = out->version, .total = memory, .free = memory};
  return NVML_SUCCESS;
}

typedef struct {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
} nvmlPciInfo_t;

API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *out) {
  NEED(is_device(device) && out);
  *out = (nvmlPciInfo_t){.bus = SC_PCI_BUS + (unsigned)device->index, .pci_device_id = 0x10DE};
  write_bus_id(device, 4, out->legacy_bus_id, sizeof out->legacy_bus_id);
  write_bus_id(device, 8, out->bus_id, sizeof out->bus_id);
  return NVML_SUCCESS;
}

/* ---- how it is used ------------------------------------------------------------------------ */

API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *out) {
  NEED(is_device(device) && out);
  *out = 0; /* NVML_COMPUTEMODE_DEFAULT: several processes at once */
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *out) {
  NEED(is_device(device) && out);
  *out = 0;
  return NVML_SUCCESS;
}

/* Every process has a device of its own. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned *count) {
  NEED(is_device(device) && count);
  *count = 0;
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                         void *infos) {
  (void)infos;
  return no_processes(device, count);
}

API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                          void *infos) {
  (void)infos;
  return no_processes(device, count);
}

/* What a device in software does not have; whatever else they take, the first parameter is a
 * device. */
#define NOT_SUPPORTED(NAME)                                                   \
  API nvmlReturn_t NAME(nvmlDevice_t device) {                                \
    NEED(is_device(device));                                                  \
    return NVML_ERROR_NOT_SUPPORTED;                                          \
  }
NOT_SUPPORTED(nvmlDeviceGetApplicationsClock)
NOT_SUPPORTED(nvmlDeviceGetBAR1MemoryInfo)
NOT_SUPPORTED(nvmlDeviceGetClock)
NOT_SUPPORTED(nvmlDeviceGetClockInfo)
NOT_SUPPORTED(nvmlDeviceGetCurrPcieLinkGeneration)
NOT_SUPPORTED(nvmlDeviceGetCurrPcieLinkWidth)
NOT_SUPPORTED(nvmlDeviceGetCurrentClocksEventReasons)
NOT_SUPPORTED(nvmlDeviceGetCurrentClocksThrottleReasons)
NOT_SUPPORTED(nvmlDeviceGetDefaultApplicationsClock)
NOT_SUPPORTED(nvmlDeviceGetEccMode)
NOT_SUPPORTED(nvmlDeviceGetEnforcedPowerLimit)
NOT_SUPPORTED(nvmlDeviceGetFanSpeed)
NOT_SUPPORTED(nvmlDeviceGetMaxClockInfo)
NOT_SUPPORTED(nvmlDeviceGetMaxPcieLinkGeneration)
NOT_SUPPORTED(nvmlDeviceGetMaxPcieLinkWidth)
NOT_SUPPORTED(nvmlDeviceGetMemoryBusWidth)
NOT_SUPPORTED(nvmlDeviceGetMigMode)
NOT_SUPPORTED(nvmlDeviceGetPerformanceState)
NOT_SUPPORTED(nvmlDeviceGetPowerManagementLimit)
NOT_SUPPORTED(nvmlDeviceGetPowerManagementLimitConstraints)
NOT_SUPPORTED(nvmlDeviceGetPowerUsage)
NOT_SUPPORTED(nvmlDeviceGetSupportedGraphicsClocks)
NOT_SUPPORTED(nvmlDeviceGetSupportedMemoryClocks)
NOT_SUPPORTED(nvmlDeviceGetTemperature)
NOT_SUPPORTED(nvmlDeviceGetTemperatureThreshold)
NOT_SUPPORTED(nvmlDeviceGetTemperatureV)
NOT_SUPPORTED(nvmlDeviceGetTotalEnergyConsumption)
NOT_SUPPORTED(nvmlDeviceGetUtilizationRates)
NOT_SUPPORTED(nvmlDeviceResetGpuLockedClocks)
NOT_SUPPORTED(nvmlDeviceSetGpuLockedClocks)
