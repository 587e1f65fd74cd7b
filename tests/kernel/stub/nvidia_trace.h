/* The driver's tracepoint for GPU errors. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nvidia

#if !defined(CT_NVIDIA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define CT_NVIDIA_TRACE_H

#include <linux/pci.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

/* Since Linux 6.10, __assign_str() takes the text from __string(). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define ASSIGN_TEXT(field, text) __assign_str(field)
#else
#define ASSIGN_TEXT(field, text) __assign_str(field, text)
#endif

// clang-format off
TRACE_EVENT(nvidia_dev_xid,
    TP_PROTO(const struct pci_dev *device, u32 error, const char *text),
    TP_ARGS(device, error, text),
    TP_STRUCT__entry(
        __string(dev, pci_name(device))
        __field(u32, error_code)
        __string(msg, text)
    ),
    TP_fast_assign(
        ASSIGN_TEXT(dev, pci_name(device));
        __entry->error_code = error;
        ASSIGN_TEXT(msg, text);
    ),
    TP_printk("Xid (PCI:%s): %u, %s", __get_str(dev), __entry->error_code, __get_str(msg))
);
// clang-format on

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE nvidia_trace
#include <trace/define_trace.h>
