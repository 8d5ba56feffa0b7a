#!/usr/bin/env python3
"""anonymous.py COMMAND...: runs a command and prints "SECONDS PEAK_MB": its time and its peak of anonymous memory (RssAnon of Linux).

Memory mapped from files is not counted, unlike in the peak that wait4 gives: the system can reclaim it when other programs need
memory. Samples every two milliseconds. The exit status is that of the command.
"""
import subprocess
import sys
import time


def anonymous(pid):
    try:
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def main():
    start, peak = time.monotonic(), 0
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, anonymous(process.pid))
        time.sleep(0.002)
    print("%.1f %.0f" % (time.monotonic() - start, peak / 1024))
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
