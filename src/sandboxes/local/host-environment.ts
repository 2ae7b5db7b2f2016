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
 * What a command sees of the host's environment: where programs and the home directory are, language, time zone and
 * terminal. Keys and other secrets are not among it; who needs one names it in `spec.env`.
 */
export function hostEnvironment(): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && isInherited(name)) out[name] = value;
  }
  out["PATH"] ||= PATH_DEFAULT;
  return out;
}

/** Whether commands get a variable of the host. */
export function isInherited(name: string): boolean {
  return INHERITED.has(name) || name.startsWith("LC_");
}
