import { type FormEvent, type ReactNode, useState } from "react";
import { ClientError } from "skein/client";
import { connect, keepToken, keptToken } from "../request/client.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { MeContext } from "../request/use-me.ts";
import { useRequest } from "../request/use-request.ts";

/** Asks for an API token if the server requires one; otherwise shows its children. */
export function SignIn({
  onToken,
  children,
}: {
  readonly onToken: () => void;
  readonly children: ReactNode;
}): ReactNode {
  const client = useClient();
  const me = useRequest("me", (signal) => client.me({ signal }));
  const refused = me.error instanceof ClientError && me.error.status === 401;
  if (refused) return <TokenForm problem={keptToken() === null ? null : me.error.message} onToken={onToken} />;
  return (
    <RequestBoundary requested={me} what="the studio">
      {(caller) => <MeContext value={caller}>{children}</MeContext>}
    </RequestBoundary>
  );
}

function TokenForm({
  problem,
  onToken,
}: {
  /** Why the stored token is no longer accepted. */
  readonly problem: string | null;
  readonly onToken: () => void;
}): ReactNode {
  const [token, setToken] = useState("");
  const given = token.trim();
  const enter = useAction(async () => {
    // Other characters are not allowed in a header: the request would fail as if the server were unreachable.
    if (!/^[\x21-\x7e]+$/.test(given)) throw new Error("A token has no spaces and no special characters.");
    await connect(given).me();
    keepToken(given);
    onToken();
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (given !== "") void enter.run();
  };
  const refusal = enter.error?.message ?? problem;
  return (
    <main className="door">
      <h1>Skein studio</h1>
      <p className="soft">
        Enter an API token of this server. It is stored until the tab is closed. If you started the server yourself, run
        skein open: it prints an address with the token.
      </p>
      <form onSubmit={submit}>
        <label>
          API token
          <input
            className="field"
            type="password"
            autoComplete="off"
            // biome-ignore lint/a11y/noAutofocus: it is the only field of the page.
            autoFocus
            value={token}
            aria-invalid={enter.error !== null}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {refusal !== null && (
          <p role="alert" className="door-problem">
            {refusal}
          </p>
        )}
        <button type="submit" className="button button-primary" disabled={given === "" || enter.busy}>
          Enter
        </button>
      </form>
    </main>
  );
}
