const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"]);

/** Whether only this machine can reach what listens on a host. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host);
}
