const INHERITED: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "LANGUAGE",
  "TERM",
  "TMPDIR",
  "TZ",
]);
const PATH_DEFAULT = "/usr/local/bin:/usr/bin:/bin";

/**
 * The environment variables of the host that commands get: `PATH`, the home directory, language, time zone and terminal.
 * Keys and other secrets are not passed on; name those that commands need in `spec.env`.
 */
export function hostEnvironment(): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && isInherited(name)) out[name] = value;
  }
  out["PATH"] ||= PATH_DEFAULT;
  return out;
}

/** Whether commands inherit a variable of the host. */
export function isInherited(name: string): boolean {
  return INHERITED.has(name) || name.startsWith("LC_");
}
