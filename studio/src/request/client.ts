import { type Client, createClient } from "skein/client";

const TOKEN_KEY = "skein-token";

/** The server that this page came from. */
export function connect(): Client {
  const token = sessionStorage.getItem(TOKEN_KEY);
  const url = new URL(".", window.location.href);
  return createClient(token === null ? { url } : { url, token });
}

/** Keeps the API token for as long as this tab is open. */
export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token);
}
