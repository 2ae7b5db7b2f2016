const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"]);

/** True for a host that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host);
}
