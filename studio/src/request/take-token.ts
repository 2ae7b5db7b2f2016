import { keepToken } from "./client.ts";

/** Names that only mean this machine. A link of someone else's to another server could carry a token of theirs. */
const OWN_MACHINE: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** The token that the part of an address after `#` hands over; null for none. */
function tokenIn(hash: string): string | null {
  return /^#token=([\x21-\x7e]+)$/.exec(hash)?.[1] ?? null;
}

/** Keeps a token that the address hands over for this tab, now and later, and takes it out of the address at once. */
export function takeTokens(): void {
  takeToken();
  // An address that is typed into a tab where the studio is open already loads nothing anew.
  window.addEventListener("hashchange", () => {
    if (takeToken()) window.location.reload();
  });
}

/** Whether there was a token to keep. */
function takeToken(): boolean {
  const token = tokenIn(window.location.hash);
  if (token === null) return false;
  // It is replaced, so that going back does not show it either.
  window.history.replaceState(window.history.state, "", "#/");
  if (!OWN_MACHINE.has(window.location.hostname)) return false;
  keepToken(token);
  return true;
}
