import { useSyncExternalStore } from "react";
import { type Client, createClient } from "skein/client";
import { Connection, type ConnectionState } from "./connection.ts";

const TOKEN_KEY = "skein-token";

/** A server that takes longer to say that it is there is not. */
const HEALTH_MS_MAX = 5000;

const connection = new Connection(
  (url, init) => fetch(url, init),
  () =>
    createClient({ url: serverUrl() })
      .health({ signal: AbortSignal.timeout(HEALTH_MS_MAX) })
      .then(
        () => true,
        () => false,
      ),
);

/** The server that this page came from, asked with a token, or else with the one that is kept. */
export function connect(token: string | null = keptToken()): Client {
  const asked = { url: serverUrl(), fetch: connection.fetch };
  return createClient(token === null ? asked : { ...asked, token });
}

/** Whether the server of this page can be reached. */
export function useConnection(): ConnectionState {
  return useSyncExternalStore(connection.subscribe, connection.read);
}

/** The API token of this tab. */
export function keptToken(): string | null {
  return sessionStorage.getItem(TOKEN_KEY);
}

/** Keeps the API token for as long as this tab is open. */
export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token);
}

/** Forgets the API token, and what was written but not sent with it. */
export function forgetToken(): void {
  sessionStorage.clear();
}

function serverUrl(): URL {
  return new URL(".", window.location.href);
}
