import { useSyncExternalStore } from "react";
import { type Client, createClient } from "skein/client";
import { Connection, type ConnectionState } from "./connection.ts";

const TOKEN_KEY = "skein-token";

/** A health check that takes longer counts as failed. */
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

/** A client for the server of this page, with the given token or the stored one. */
export function connect(token: string | null = keptToken()): Client {
  const asked = { url: serverUrl(), fetch: connection.fetch };
  return createClient(token === null ? asked : { ...asked, token });
}

/** Whether the server of this page is reachable. */
export function useConnection(): ConnectionState {
  return useSyncExternalStore(connection.subscribe, connection.read);
}

/** The API token of this tab. */
export function keptToken(): string | null {
  return sessionStorage.getItem(TOKEN_KEY);
}

/** Stores the API token until this tab is closed. */
export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token);
}

/** Deletes the API token, and the drafts of messages. */
export function forgetToken(): void {
  sessionStorage.clear();
}

function serverUrl(): URL {
  return new URL(".", window.location.href);
}
