#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of each of two guests, which run one MPI job (hosts.py). The kernel's command line says
# which one this is: host=1 starts the job, host=2 waits for its command. Each writes its files to its disk as
# a tar archive, and powers off.

/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin:/usr/bin HOME=/tmp WAFFLE_LIBBPF=1
mkdir -p /proc /sys /dev /tmp /out /run /etc
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
mount -t bpf bpf /sys/fs/bpf
for module in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk \
	failover net_failover virtio_net; do
	[ ! -f "/modules/$module.ko" ] || insmod "/modules/$module.ko"
done

host=$(tr ' ' '\n' </proc/cmdline | sed -n 's/^host=//p')
name=node-$host
hostname "$name"
printf '127.0.0.1 localhost\n10.0.0.1 node-1\n10.0.0.2 node-2\n' >/etc/hosts
echo 'root:x:0:0:root:/tmp:/bin/sh' >/etc/passwd
ip link set lo up
ip link set eth0 up
ip addr add "10.0.0.$host/24" dev eth0

until ping -c 1 -W 1 10.0.0.$((3 - host)) >/dev/null; do sleep 0.2; done
export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 MPIR_CVAR_NOLOCAL=1

# This guest's clock runs faster than the other one's, by 150 ppm.
[ "$host" = 1 ] || adjtimex -t 10001 -f 3276800 >/dev/null

cat >/bin/rank <<'END'
#!/bin/sh
exec waffle-bpf run -q --no-report --user root --probes mpi -o "/out/$PMI_RANK.waffle" -- mpi_pair /out 300
END
chmod +x /bin/rank
cd /tmp || exit 1

if [ "$host" = 1 ]; then
	mpirun.mpich -launcher manual -localhost 10.0.0.1 -hosts 10.0.0.1,10.0.0.2 -n 2 /bin/rank >said 2>&1 &
	until grep -q HYDRA_LAUNCH_END said; do sleep 0.1; done
	sed -n 's/^HYDRA_LAUNCH: //p' said >commands
	until sed -n 2p commands | nc 10.0.0.2 7000; do sleep 0.2; done
	sh -c "$(sed -n 1p commands)" >proxy 2>&1 &
	wait
	cat said proxy
else
	nc -l -p 7000 >command </dev/null
	sh -c "$(cat command)" >proxy 2>&1
	cat proxy
fi
ls -l /out
tar -c -f - -C /out . >/dev/vda
sync
echo "done $name"
poweroff -f
