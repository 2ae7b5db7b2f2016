import { useSyncExternalStore } from "react";

/** The views of one session. */
export const SESSION_VIEWS = ["talk", "context", "compare", "checkpoints", "lineage", "group"] as const;

/** One view of a session. */
export type SessionView = (typeof SESSION_VIEWS)[number];

/** The current page; stored only in the URL. */
export type Route =
  | { readonly page: "sessions" }
  | { readonly page: "analytics" }
  | { readonly page: "questions" }
  | { readonly page: "fleet" }
  | {
      readonly page: "session";
      readonly id: string;
      readonly view: SessionView;
      /** Further options of the view, such as `entry` or `with`. */
      readonly options: Readonly<Record<string, string>>;
    };

/** The route of the part of a URL after `#`; an unknown one leads to the session list. */
export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [page, id, view] = path.split("/").map(decode);
  if (page === "analytics" || page === "questions" || page === "fleet") return { page };
  if (page !== "sessions" || id === undefined || id === "") return { page: "sessions" };
  const options = Object.fromEntries(new URLSearchParams(query));
  const known = SESSION_VIEWS.find((name) => name === view) ?? "talk";
  return { page: "session", id, view: known, options };
}

/** The part of a URL after `#` for a route. */
export function addressOf(route: Route): string {
  if (route.page !== "session") return route.page === "sessions" ? "#/" : `#/${route.page}`;
  const query = new URLSearchParams(route.options).toString();
  const path = `#/sessions/${encodeURIComponent(route.id)}/${route.view}`;
  return query === "" ? path : `${path}?${query}`;
}

/** Navigates to a route, with an entry in the browser's history. */
export function goTo(route: Route): void {
  window.location.hash = addressOf(route);
}

/** The current route. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  return parseRoute(hash);
}

function subscribe(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
