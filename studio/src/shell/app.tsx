import { type ReactNode, useState } from "react";
import { AnalyticsPage } from "../analytics/analytics-page.tsx";
import { connect } from "../request/client.ts";
import { ClientContext } from "../request/use-client.ts";
import { SessionPage } from "../session/session-page.tsx";
import { SessionsPage } from "../sessions/sessions-page.tsx";
import { SessionsSidebar } from "../sessions/sessions-sidebar.tsx";
import { Door } from "./door.tsx";
import { addressOf, type Place, usePlace } from "./place.ts";
import "./app.css";

/** The studio. */
export function App(): ReactNode {
  const [client, setClient] = useState(connect);
  return (
    <ClientContext value={client}>
      <Door onToken={() => setClient(connect())}>
        <Studio />
      </Door>
    </ClientContext>
  );
}

function Studio(): ReactNode {
  const place = usePlace();
  return (
    <div className={`app app-${place.page}`}>
      <button type="button" className="skip-link" onClick={focusMain}>
        Skip to the content
      </button>
      <aside className="app-side">
        <header className="app-name">
          <a href={addressOf({ page: "sessions" })}>Skein studio</a>
          <a
            href={addressOf({ page: "analytics" })}
            aria-current={place.page === "analytics" ? "page" : undefined}
            className="small"
          >
            Analytics
          </a>
        </header>
        <SessionsSidebar selectedId={place.page === "session" ? place.id : null} />
      </aside>
      <main id="main" tabIndex={-1} className="app-main">
        <Page place={place} />
      </main>
    </div>
  );
}

function Page({ place }: { readonly place: Place }): ReactNode {
  if (place.page === "analytics") return <AnalyticsPage />;
  if (place.page === "sessions") return <SessionsPage />;
  return <SessionPage key={place.id} place={place} />;
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}
