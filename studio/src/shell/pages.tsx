import type { ReactNode } from "react";
import { countOf, useInbox } from "../questions/use-inbox.ts";
import { Icon, type IconName } from "./icon.tsx";
import { addressOf, type Route } from "./route.ts";

type PageName = Exclude<Route["page"], "session">;

/** The pages beside those of sessions. */
export const PAGES: readonly { readonly page: PageName; readonly name: string; readonly icon: IconName }[] = [
  { page: "sessions", name: "Overview", icon: "home" },
  { page: "questions", name: "Questions", icon: "question" },
  { page: "analytics", name: "Analytics", icon: "chart" },
  { page: "fleet", name: "Fleet", icon: "fleet" },
];

/** Leads to the pages; the number beside Questions is how many wait for an answer. */
export function Pages({ page }: { readonly page: Route["page"] }): ReactNode {
  const { data } = useInbox();
  const count = data === null ? "0" : countOf(data);
  return (
    <nav aria-label="Pages" className="app-pages">
      {PAGES.map((each) => (
        <a key={each.page} href={addressOf({ page: each.page })} aria-current={each.page === page ? "page" : undefined}>
          <Icon name={each.icon} />
          <span className="app-page-name">{each.name}</span>
          {each.page === "questions" && count !== "0" && (
            <>
              {" "}
              <span className="questions-count">
                {count}
                <span className="only-for-readers"> waiting</span>
              </span>
            </>
          )}
        </a>
      ))}
    </nav>
  );
}
