import { createContext, useContext } from "react";
import type { Client } from "skein/client";

/** The client that all components below use. */
export const ClientContext = createContext<Client | null>(null);

/** The client of the server. */
export function useClient(): Client {
  const client = useContext(ClientContext);
  if (client === null) throw new Error("There is no client above this component.");
  return client;
}
