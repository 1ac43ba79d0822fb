package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"animalstore/docs"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// patroniPackages are from PyPI: Debian 12's Patroni 3.0.2 lost acknowledged writes with etcd 3
// when its leader froze (Patroni's issues 2689 and 2693).
var patroniPackages = []string{"patroni[etcd3,psycopg3]==4.1.5", "psycopg[binary]==3.3.9"}

// machine is a network namespace with its own address, and all processes in it.
type machine struct {
	t       *testing.T
	name    string // of the namespace
	address string
	log     string
	argv    []string // of the program that it runs
}

func (m *machine) start() {
	m.t.Helper()
	// A process that outlives its program keeps the log open, but no pipe to this one.
	startProgram(m.t, append([]string{"sh", "-c", `exec "$@" >>"$0" 2>&1`, m.log}, m.argv...)...)
}

// processes returns the ids of its processes whose command line is wanted.
func (m *machine) processes(wanted func(command string) bool) (pids []int) {
	out, _ := exec.Command("ip", "netns", "pids", m.name).Output()
	for field := range strings.FieldsSeq(string(out)) {
		command, err := os.ReadFile("/proc/" + field + "/cmdline")
		if pid, _ := strconv.Atoi(field); err == nil && pid > 0 && wanted(string(command)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func isPatroni(command string) bool   { return strings.Contains(command, "bin/patroni\x00") }
func isPostgres(command string) bool  { return !isPatroni(command) }
func isWALSender(command string) bool { return strings.Contains(command, "walsender") }
func isAny(string) bool               { return true }

// signal sends a signal to processes, and to those that they started meanwhile.
func (m *machine) signal(s syscall.Signal, wanted func(command string) bool) {
	for range 2 {
		for _, pid := range m.processes(wanted) {
			syscall.Kill(pid, s)
		}
	}
}

// kill ends processes and waits until they are gone.
func (m *machine) kill(wanted func(command string) bool) {
	testenv.Eventually(m.t, m.name+" is killed", func() bool {
		m.signal(syscall.SIGKILL, wanted)
		return len(m.processes(wanted)) == 0
	})
}

// cluster is PostgreSQL on three machines, one of them a synchronous standby. Patroni promotes
// another when the primary fails, and keeps its state in etcd, on a fourth machine.
type cluster struct {
	t       *testing.T
	dir     string
	network string // such as 10.77.8
	etcd    *machine
	members []*machine
	proxy   string // the address of HAProxy, which leads to the primary
}

func ip(t *testing.T, command string) {
	t.Helper()
	output(t, exec.Command("ip", strings.Fields(command)...))
}

// startCluster starts a cluster, and removes it when the test ends.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	for _, program := range []string{"ip", "nsenter", "python3", "etcd", "haproxy"} {
		testenv.Need(t, program)
	}
	if os.Getuid() != 0 {
		testenv.Missing(t, "only root can create network namespaces")
	}
	binaries := pgtest.Binaries(t)
	nobody, err := user.Lookup("nobody") // PostgreSQL refuses to run as root
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir, which only root may enter.
	dir, err := os.MkdirTemp("", "animalstore-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	output(t, exec.Command("chown", nobody.Uid+":"+nobody.Gid, dir))
	// env skips a python3 on the PATH that only root may run.
	asNobody := []string{"nsenter", "--setuid", nobody.Uid, "--setgid", nobody.Gid, "env", "HOME=" + dir}
	venv := filepath.Join(dir, "venv")
	pip := append([]string{filepath.Join(venv, "bin", "pip"), "install", "--quiet"}, patroniPackages...)
	for _, argv := range [][]string{{"python3", "-m", "venv", venv}, pip} {
		output(t, exec.Command(asNobody[0], append(asNobody[1:], argv...)...))
	}

	// Other tests on this machine may have clusters too.
	c := &cluster{t: t, dir: dir, network: fmt.Sprint("10.77.", os.Getpid()%256)}
	bridge := fmt.Sprint("store", os.Getpid())
	ip(t, "link add "+bridge+" type bridge")
	t.Cleanup(func() { ip(t, "link del "+bridge) })
	ip(t, fmt.Sprintf("address add %s.254/24 dev %s", c.network, bridge))
	ip(t, "link set "+bridge+" up")

	c.etcd = c.newMachine(bridge, 4)
	peer, clients := "http://"+c.etcd.address+":2380", "http://"+c.etcd.address+":2379"
	on := func(m *machine, argv ...string) []string {
		return slices.Concat(asNobody[:1], []string{"--net=/run/netns/" + m.name}, asNobody[1:], argv)
	}
	c.etcd.argv = on(c.etcd, "etcd", "--name=etcd", "--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=etcd="+peer,
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients)
	c.etcd.start()
	for i := range 3 {
		m := c.newMachine(bridge, i+1)
		c.members = append(c.members, m)
		settings := filepath.Join(dir, m.name+".yml")
		mustWrite(t, settings, strings.NewReplacer("GUIDE\n", guideBlock(t, "yaml"), "NAME", m.name, "ADDRESS", m.address, "ETCD", c.etcd.address,
			"DIR", dir, "BINARIES", binaries).Replace(patroniSettings), 0o644)
		m.argv = on(m, filepath.Join(venv, "bin", "patroni"), settings)
		m.start()
	}
	t.Cleanup(c.printLogs)
	c.awaitHealthy(t)
	c.startProxy()
	return c
}

// newMachine creates a machine on a bridge.
func (c *cluster) newMachine(bridge string, i int) *machine {
	c.t.Helper()
	name := fmt.Sprint(bridge, "-", i)
	m := &machine{t: c.t, name: name, address: fmt.Sprint(c.network, ".", i), log: filepath.Join(c.dir, name+".log")}
	ip(c.t, "netns add "+name)
	c.t.Cleanup(func() {
		m.kill(isAny)
		ip(c.t, "netns del "+name)
	})
	ip(c.t, fmt.Sprintf("link add %s type veth peer name eth0 netns %s", name, name))
	ip(c.t, fmt.Sprintf("link set %s up master %s", name, bridge))
	ip(c.t, fmt.Sprintf("-n %s address add %s/24 dev eth0", name, m.address))
	ip(c.t, fmt.Sprintf("-n %s link set eth0 up", name))
	ip(c.t, fmt.Sprintf("-n %s link set lo up", name))
	return m
}

// patroniSettings are those of a member. No fault loses what the system has yet to write to
// disk, so nothing is synced.
const patroniSettings = `
scope: store
name: NAME
etcd3: {host: 'ETCD:2379'}
restapi: {listen: 'ADDRESS:8008', connect_address: 'ADDRESS:8008'}
GUIDE
    postgresql:
      use_pg_rewind: true
      parameters: {fsync: 'off', wal_log_hints: 'on', max_connections: 200, shared_buffers: 32MB}
  initdb: [encoding: UTF8, locale: C, no-sync]
postgresql:
  listen: 'ADDRESS,127.0.0.1:5432'
  connect_address: 'ADDRESS:5432'
  bin_dir: BINARIES
  data_dir: DIR/NAME
  pgpass: DIR/NAME.pgpass
  parameters: {unix_socket_directories: ''}
  authentication: {superuser: {username: postgres}, replication: {username: replicator}, rewind: {username: postgres}}
  pg_hba: [host all all all trust, host replication all all trust]
  basebackup: [checkpoint: fast]
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
`

// guideBlock returns the code block of a language in what the guide says about Patroni.
func guideBlock(t *testing.T, lang string) string {
	t.Helper()
	guide, err := docs.Files.ReadFile("scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n### Patroni\n")
	section, _, _ = strings.Cut(section, "\n### ")
	_, block, found := strings.Cut(section, "\n```"+lang+"\n")
	block, _, _ = strings.Cut(block, "```\n")
	if !found {
		t.Fatalf("the guide has no block of %s", lang)
	}
	return block
}

// startProxy starts HAProxy, and waits until it leads only to the primary: at first, it also
// leads to members that it hasn't checked yet, one after the other.
func (c *cluster) startProxy() {
	c.t.Helper()
	c.proxy = pgtest.FreeAddress(c.t)
	addresses := []string{"127.0.0.1:5000", c.proxy}
	for i, m := range c.members {
		addresses = append(addresses, fmt.Sprint("10.0.0.", i+1), m.address)
	}
	settings := strings.NewReplacer(addresses...).Replace(guideBlock(c.t, "text"))
	path := filepath.Join(c.dir, "haproxy.cfg")
	mustWrite(c.t, path, settings, 0o644)
	startProgram(c.t, "haproxy", "-db", "-f", path)
	testenv.Eventually(c.t, "HAProxy leads only to the primary", func() bool {
		for range c.members {
			conn, err := pgx.Connect(c.t.Context(), urlOf("postgres", "postgres", c.proxy)+"&target_session_attrs=read-write")
			if err != nil {
				return false
			}
			conn.Close(c.t.Context())
		}
		return true
	})
}

// printLogs prints the end of each log if the test has failed.
func (c *cluster) printLogs() {
	if !c.t.Failed() {
		return
	}
	for _, m := range c.members {
		text, _ := os.ReadFile(m.log)
		lines := strings.Split(string(text), "\n")
		c.t.Logf("%s:\n%s", m.name, strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// urlOf leads to a database, through one or several addresses.
func urlOf(user, database string, addresses ...string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", user, strings.Join(addresses, ","), database)
}

// hosts are the addresses of all members' PostgreSQL.
func (c *cluster) hosts() (all []string) {
	for _, m := range c.members {
		all = append(all, m.address+":5432")
	}
	return all
}

// mustExec runs statements on a member.
func (c *cluster) mustExec(m *machine, database string, statements ...string) {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), urlOf("postgres", database, m.address+":5432"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(c.t.Context())
	for _, statement := range statements {
		if _, err := conn.Exec(c.t.Context(), statement); err != nil {
			c.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// member is a member as Patroni describes it.
type member struct {
	Name, Role, State string
	Timeline          int
}

// withRole finds the member with a role, of those that are running.
func (c *cluster) withRole(role string, all []member) *machine {
	for _, m := range all {
		if i := slices.IndexFunc(c.members, func(o *machine) bool { return o.name == m.Name }); i >= 0 && m.Role == role &&
			(m.State == "running" || m.State == "streaming") {
			return c.members[i]
		}
	}
	return nil
}

// describe returns the members as one of them sees the cluster, or nil if it doesn't respond.
func (c *cluster) describe(by *machine) []member {
	var found struct{ Members []member }
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + by.address + ":8008/cluster")
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&found); err != nil {
		return nil
	}
	return found.Members
}

// awaitHealthy waits until the cluster has a primary, a synchronous standby and another standby
// that follows.
func (c *cluster) awaitHealthy(t *testing.T) (primary, standby *machine) {
	t.Helper()
	testenv.Eventually(t, "the cluster is healthy", func() bool {
		time.Sleep(100 * time.Millisecond)
		all := c.describe(c.members[0])
		primary, standby = c.withRole("leader", all), c.withRole("sync_standby", all)
		if primary == nil || standby == nil || c.withRole("replica", all) == nil {
			return false
		}
		return !slices.ContainsFunc(all, func(m member) bool { return m.Timeline != all[0].Timeline })
	})
	return primary, standby
}

// awaitOther waits until a member other than one is the primary.
func (c *cluster) awaitOther(t *testing.T, old *machine) {
	t.Helper()
	witness := c.members[0]
	if witness == old {
		witness = c.members[1]
	}
	testenv.Eventually(t, "another member is the primary", func() bool {
		time.Sleep(100 * time.Millisecond)
		now := c.withRole("leader", c.describe(witness))
		return now != nil && now != old
	})
}
