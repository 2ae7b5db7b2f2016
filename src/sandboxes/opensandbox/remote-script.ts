/** How much of one stream of a command's output is kept: half of it from the beginning, half from the end. */
const OUTPUT_BYTES_MAX: number = 256 * 1024;

/** The environment variable that identifies all processes of a command, even daemons. */
const COMMAND_VARIABLE = "SKEIN_COMMAND_ID";

/** Quotes a text as one word for a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The beginning of every script.
 *
 * Scripts print fields that end in `|`, with bytes as base64, because a server may split output anywhere. The system's tool
 * directories are appended to the path, for a sandbox whose own path is unusable.
 */
function prelude(roots: readonly string[]): string {
  const patterns = roots.map((root) => `${quote(root === "/" ? "" : root)}/*`).join("|");
  return `o=$PATH; PATH=$PATH:/usr/local/bin:/usr/bin:/bin
say() { printf '%s|' "$@"; }
give() { say "$@"; exit 0; }
encoded() { base64 | tr -d '\\n'; printf '|'; }
inside() { case "$1/" in ${patterns}) return 0 ;; esac; return 1; }
real() {
  p=$1; t=; n=0
  while :; do
    while [ ! -e "$p" ] && [ ! -L "$p" ] && [ "$p" != / ]; do t=/\${p##*/}$t; p=\${p%/*}; p=\${p:-/}; done
    case "$t/" in */../*) give outside ;; esac
    q=$(readlink -f -- "$p" 2>/dev/null && printf x) && break
    n=$((n + 1)); [ $n -lt 40 ] || give outside
    l=$(readlink -- "$p" && printf x) || give outside
    l=\${l%??}; case "$l" in /*) p=$l ;; *) p=\${p%/*}/$l ;; esac
  done
  q=\${q%??}; q=\${q%/}$t; q=\${q:-/}
  inside "$q" || give outside
}
`;
}

/** Creates the root and a scratch directory, and prints both, the resolved allowed paths and the installed programs. */
export function openScript(
  workingDir: string | null,
  allowPaths: readonly string[],
  scratchId: string,
  programs: readonly string[],
): string {
  const root = workingDir === null ? `"\${HOME:-/tmp}/workspace"` : quote(workingDir);
  return `${prelude(["/"])}r=${root}
mkdir -p -- "$r" && cd -- "$r" || give failed
s=\${TMPDIR:-/tmp}/.skein-${scratchId}
mkdir -p -m 700 -- "$s" || give failed
say opened; pwd -P | encoded; cd -- "$s" && pwd -P | encoded
for a in ${allowPaths.map(quote).join(" ")}; do real "$a"; printf %s "$q" | encoded; done
for n in ${programs.map(quote).join(" ")}; do command -v "$n" >/dev/null 2>&1 && say "$n"; done
say end`;
}

/** The source of a command: a shell text, a file with one, a program with arguments, or code for an interpreter. */
export type CommandSource =
  | { readonly text: string }
  | { readonly file: string }
  | { readonly list: readonly string[] }
  | { readonly code: string; readonly program: string; readonly ending: string };

/** The parts of a command script. */
export interface CommandScript {
  readonly roots: readonly string[];
  readonly commandId: string;
  /** The prefix of its scratch files. */
  readonly scratch: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly command: CommandSource;
  readonly hasInput: boolean;
}

/** Runs a command with its output in files, and prints its exit code and its output, byte for byte. */
export function commandScript({ roots, commandId, scratch, cwd, env, command, hasInput }: CommandScript): string {
  const variables = Object.entries({ ...env, [COMMAND_VARIABLE]: commandId });
  const half = OUTPUT_BYTES_MAX / 2;
  return `${prelude(roots)}d=${quote(scratch)}; x=./.skein-${commandId}.${"ending" in command ? command.ending : "tmp"}
${sweep(commandId)}
trap : TERM
real ${quote(cwd)}
[ -e "$q" ] || give missing
cd -- "$q" 2>/dev/null || give not-directory
${"code" in command ? `cp -- ${quote(command.code)} "$x" 2>/dev/null || give failed` : ":"}
(exec env PATH="$o" ${variables.map(([name, value]) => quote(`${name}=${value}`)).join(" ")} \
/bin/sh ${shellArguments(command)} >"$d-out" 2>"$d-err" <${hasInput ? '"$d-in"' : "/dev/null"})
c=$?
sweep 1
rm -f -- "$x"
[ -e "$d-unstarted" ] && { rm -rf -- "$d"-*; give unstarted; }
part() {
  n=$(stat -c %s -- "$1" 2>/dev/null || printf 0); say "$n"
  if [ "$n" -le ${OUTPUT_BYTES_MAX} ]; then head -c "$n" <"$1" | encoded; say ""
  else head -c ${half} <"$1" | encoded; tail -c ${half} <"$1" | encoded; fi
}
say done "$c"; part "$d-out"; part "$d-err"; say end
rm -rf -- "$d"-*`;
}

function shellArguments(command: CommandSource): string {
  if ("text" in command) return `-c ${quote(command.text)}`;
  if ("file" in command) return quote(command.file);
  if ("code" in command) return `-c 'exec "$@"' sh ${quote(command.program)} "$x"`;
  // Checks first that the program exists: an exit code of 127 could also be the program's own.
  const find = 'command -v "$1" >/dev/null 2>&1 || { : >"$0"; exit 127; }; exec "$@"';
  return `-c ${quote(find)} "$d-unstarted" ${command.list.map(quote).join(" ")}`;
}

/** Kills a command and all processes that it started. */
export function killScript(commandId: string): string {
  return `${prelude(["/"])}${sweep(commandId)}
sweep 2
say $clean end`;
}

/**
 * A shell function that kills all processes of a command, until several scans in a row find none.
 *
 * Processes are found by the environment variable that they inherit, even if they left the command's process group. A process
 * that starts a successor and exits may escape a scan; so between two scans the youngest processes are polled closely, which
 * needs a shell that can read /proc itself (others use external programs). It compares the variables of a process one by one only
 * if the mark is among them: that takes a tenth of the time. The first scan only stops processes (SIGSTOP), so
 * that a shell does not report the death of its child before it is killed itself.
 */
function sweep(commandId: string): string {
  const mark = `${COMMAND_VARIABLE}=${commandId}`;
  const look = `mapfile -d "" -t a <"/proc/$p/environ" && [[ "\${a[*]}" == *"${mark}"* ]] &&
for v in "\${a[@]}"; do [ "$v" = "${mark}" ] && { kill -$s "$p"; clean=0; }; done`;
  return `look() { eval ${quote(look)}; } 2>/dev/null
watch() {
  n=0
  while [ $n -lt 60 ]; do
    n=$((n + 1)); read -r _ _ _ _ last </proc/loadavg; p=$last
    while [ $p -gt 1 ] && [ $p -gt $((last - 32)) ]; do [ -e "/proc/$p" ] && look; p=$((p - 1)); done
  done
}
sweep() {
  i=0; clean=0; s=STOP
  while [ $i -lt 100 ] && [ $clean -lt $1 ]; do
    i=$((i + 1)); clean=$((clean + 1))
    if [ -n "\${BASH_VERSION-}" ]; then
      for p in /proc/[0-9]*; do p=\${p#/proc/}; look; done
      [ $clean -ge $1 ] || watch
    else
      for p in /proc/[0-9]*; do
        { tr '\\0' '\\n' <"$p/environ" | grep -q -x -F ${mark}; } 2>/dev/null || continue
        clean=0; kill -$s "\${p#/proc/}" 2>/dev/null
      done
      [ $clean -eq 0 ] || [ $clean -ge $1 ] || sleep 0.02 2>/dev/null || sleep 1
    fi
    s=KILL
  done
}`;
}

/** Prints the type of the item at a path, and its path with links resolved. */
export function statScript(roots: readonly string[], path: string): string {
  return `${prelude(roots)}real ${quote(path)}
[ -e "$q" ] || [ -L "$q" ] || give missing
if [ -d "$q" ]; then say directory 0; elif [ -f "$q" ]; then say file "$(stat -c %s -- "$q")"; else say other 0; fi
printf %s "$q" | encoded; say end`;
}

/** Moves a scratch file to its path atomically: a reader sees the old file or the new one. */
export function moveScript(roots: readonly string[], scratch: string, path: string, temporary: string): string {
  return `${prelude(roots)}s=${quote(scratch)}
trap 'rm -f -- "$s"' EXIT
real ${quote(path)}
[ "$q" = ${quote(roots[0] ?? "/")} ] && give not-file
[ -e "$q" ] && [ ! -f "$q" ] && give not-file
k=\${q%/*}; k=\${k:-/}
mkdir -p -- "$k" 2>/dev/null || { [ -d "$k" ] && give failed; give missing; }
t=$k/${temporary}
mv -f -- "$s" "$t" 2>/dev/null || give failed
m=$(stat -c %a -- "$q" 2>/dev/null) && chmod "$m" "$t"
mv -f -- "$t" "$q" 2>/dev/null || { rm -f -- "$t"; give failed; }
say done end`;
}

/** Removes the item at a path, but never the root or a directory that contains it. */
export function removeScript(roots: readonly string[], path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const carried = roots.map(quote).join(" ");
  return `${prelude(["/"])}real ${quote(path.slice(0, path.lastIndexOf("/")) || "/")}
i=\${q%/}/${name === "" ? "" : quote(name)}
${prelude(roots)}inside "$i" || give outside
for r in ${carried}; do case "$r/" in "\${i%/}"/*) give root ;; esac; done
[ -e "$i" ] || [ -L "$i" ] || give absent
rm -rf -- "$i" 2>/dev/null || give failed
say done end`;
}

/** Packs the files of a root (null: the default root) into one scratch file. */
export function packScript(workingDir: string | null, scratch: string): string {
  const root = workingDir === null ? `"\${HOME:-/tmp}/workspace"` : quote(workingDir);
  return `${prelude(["/"])}cd -- ${root} 2>/dev/null || give missing
tar -cf ${quote(scratch)} . 2>/dev/null || give failed
say done end`;
}

/** Replaces the files of a root by those of a packed root. If the archive cannot be read, nothing changes. */
export function unpackScript(root: string, scratch: string): string {
  return `${prelude(["/"])}s=${quote(scratch)}
trap 'rm -f -- "$s"' EXIT
cd -- ${quote(root)} && tar -tf "$s" >/dev/null 2>&1 || give failed
clear() { find . -mindepth 1 -maxdepth 1 -exec rm -rf -- {} + 2>/dev/null; }
clear || { chmod -R u+rwx . 2>/dev/null; clear || give failed; }
tar -xpf "$s" 2>/dev/null || give failed
find . ! -type f ! -type d ! -type l -exec rm -f -- {} + 2>/dev/null
say done end`;
}
