#!/usr/bin/env bash
# Runs one command in a virtual machine that has an RDMA device: Debian's kernel with soft-RoCE
# (rdma_rxe) under QEMU's emulation, which needs neither KVM nor any module of the host. The guest
# sees the host's root folder read-only, so the very binaries that were built here run there, over
# 10.77.0.1. Its /tmp, /run and /dev/shm are its own.
#
#   guest.sh FOLDER SECONDS COMMAND [ARGUMENT...]
#
# FOLDER keeps the kernel, the initial file system and the console's log between runs. Prints the
# command's output and ends with its exit status: 124 after SECONDS, 125 if the guest failed, 77 if
# there can be none because a package cannot be had.
set -euo pipefail
readonly CALLERS_FOLDER=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly FOLDER=$1 SECONDS_MAX=$2
shift 2
readonly MODULES=(
  crc32_generic rdma_rxe rdma_ucm ib_uverbs dummy virtio_net virtio_pci 9p 9pnet_virtio)
readonly CONSOLE=$FOLDER/console.log OUTPUT=$FOLDER/output.log

skip() {
  echo "guest: skipped: $*"
  exit 77
}

check_programs() {
  local name
  for name in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static modprobe:kmod cpio:cpio \
    rdma:iproute2 dpkg:dpkg; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${name%:*}" >/dev/null ||
      skip "the package ${name#*:} is missing; './run vm' installs it"
  done
}

kernel_package() {
  apt-cache depends linux-image-amd64 2>/dev/null |
    sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

# The kernel is unpacked, not installed.
fetch_kernel() {
  [[ -e $FOLDER/kernel/done ]] && return
  local package
  package=$(kernel_package)
  if [[ -z $package ]]; then
    apt-get -q update >/dev/null 2>&1 || true
    package=$(kernel_package)
  fi
  rm -rf "$FOLDER/kernel"
  mkdir -p "$FOLDER/kernel"
  [[ -n $package ]] || skip "no package with a kernel is known; 'apt-get update' fetches the lists"
  (cd "$FOLDER/kernel" && apt-get -q download "$package" >download.log 2>&1) ||
    skip "the package $package cannot be fetched; see $FOLDER/kernel/download.log"
  dpkg -x "$FOLDER/kernel/$package"_*.deb "$FOLDER/kernel"
  rm "$FOLDER/kernel/$package"_*.deb
  touch "$FOLDER/kernel/done"
}

build_initial_files() {
  [[ $FOLDER/initial.cpio.gz -nt init && $FOLDER/initial.cpio.gz -nt guest.sh &&
    $FOLDER/initial.cpio.gz -nt $FOLDER/kernel/done ]] && return
  local files=$FOLDER/initial version module path
  version=$(cd "$FOLDER/kernel/lib/modules" && echo *)
  rm -rf "$files"
  mkdir -p "$files"/{bin,proc,sys,dev,modules}
  cp "$(command -v busybox)" "$files/bin/busybox"
  cp init "$files/init"
  depmod -b "$FOLDER/kernel" "$version"
  for module in "${MODULES[@]}"; do
    modprobe --show-depends -d "$FOLDER/kernel" -S "$version" "$module"
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r path; do
    cp "$path" "$files/modules/"
    echo "/modules/${path##*/}"
  done >"$files/list"
  rmdir "$files/modules" 2>/dev/null && skip "the kernel package has no modules"
  sed -i 's,<modules,<list,' "$files/init"
  chmod +x "$files/init"
  (cd "$files" && find . | cpio -o -H newc --quiet | gzip -1) >"$FOLDER/initial.cpio.gz.new"
  mv "$FOLDER/initial.cpio.gz.new" "$FOLDER/initial.cpio.gz"
}

boot() {
  local memory_mib=$1 status=0
  # Reading the emulated HPET, the kernel's own choice, costs as much as a small RDMA write.
  local clock='tsc=reliable clocksource=tsc no_timer_check'
  timeout -k 5 "$SECONDS_MAX" qemu-system-x86_64 -accel tcg,thread=multi -cpu max \
    -m "${memory_mib}M" -smp 2 -no-reboot -display none -monitor none \
    -serial "file:$CONSOLE" -serial stdio \
    -kernel "$(echo "$FOLDER"/kernel/boot/vmlinuz-*)" -initrd "$FOLDER/initial.cpio.gz" \
    -append "console=ttyS0 quiet panic=-1 $clock nacre.command=$FOLDER/command" \
    -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
    -device virtio-9p-pci,fsdev=host,mount_tag=host </dev/null 2>>"$CONSOLE.qemu" |
    tee "$OUTPUT" | { grep -v --line-buffered '^guest: exit status ' || true; }
  status=${PIPESTATUS[0]}
  if ((status == 124 || status == 137)); then
    echo "guest: stopped after $SECONDS_MAX s"
    exit 124
  fi
}

main() {
  check_programs
  PATH=$PATH:/usr/sbin:/sbin
  exec 9>"$FOLDER/lock"
  flock 9
  fetch_kernel
  build_initial_files
  # The guest copies the file before it hides the host's /tmp.
  {
    echo "# sources: $(cd ../.. && pwd)"
    printf 'cd %q\nexec' "$CALLERS_FOLDER"
    printf ' %q' "$@"
    echo
  } >"$FOLDER/command"
  rm -f "$CONSOLE" "$CONSOLE.qemu" "$OUTPUT"
  boot "${NACRE_GUEST_MIB:-3072}"
  local status
  status=$(sed -n 's/^guest: exit status //p' "$OUTPUT" | tail -n 1)
  if [[ -z $status ]]; then
    echo "guest: ended without an exit status; its console said last:"
    tail -n 20 "$CONSOLE" "$CONSOLE.qemu"
    exit 125
  fi
  exit "$status"
}

mkdir -p "$FOLDER"
main "$@"
