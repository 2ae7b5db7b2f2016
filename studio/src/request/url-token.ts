import { keepToken } from "./client.ts";

/**
 * Host names of this machine. On another host, the token of a foreign link is not accepted: it could sign the user in
 * as someone else.
 */
const OWN_MACHINE: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** The token in the part of a URL after `#`; null without one. */
function tokenIn(hash: string): string | null {
  return /^#token=([\x21-\x7e]+)$/.exec(hash)?.[1] ?? null;
}

/**
 * Stores the token of the URL for this tab, also after later navigations, and removes it from the URL synchronously.
 */
export function acceptUrlTokens(): void {
  acceptUrlToken();
  // A URL typed into a tab with the open studio only changes the hash and loads nothing.
  window.addEventListener("hashchange", () => {
    if (acceptUrlToken()) window.location.reload();
  });
}

/** Returns whether there was a token to store. */
function acceptUrlToken(): boolean {
  const token = tokenIn(window.location.hash);
  if (token === null) return false;
  // Replaces the history entry, so that going back does not show the token either.
  window.history.replaceState(window.history.state, "", "#/");
  if (!OWN_MACHINE.has(window.location.hostname)) return false;
  keepToken(token);
  return true;
}
