import { type FormEvent, type ReactNode, useState } from "react";
import { ClientError } from "skein/client";
import { connect, keepToken, keptToken } from "../request/client.ts";
import { Shown } from "../request/shown.tsx";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { MeContext } from "../request/use-me.ts";
import { useRequest } from "../request/use-request.ts";

/** Asks for an API token where the server wants one; otherwise it is open. */
export function Door({ onToken, children }: { readonly onToken: () => void; readonly children: ReactNode }): ReactNode {
  const client = useClient();
  const me = useRequest("me", (signal) => client.me({ signal }));
  const refused = me.error instanceof ClientError && me.error.status === 401;
  if (refused) return <TokenForm problem={keptToken() === null ? null : me.error.message} onToken={onToken} />;
  return (
    <Shown requested={me} what="the studio">
      {(caller) => <MeContext value={caller}>{children}</MeContext>}
    </Shown>
  );
}

function TokenForm({
  problem,
  onToken,
}: {
  /** Why the token that is kept does not let anyone in any more. */
  readonly problem: string | null;
  readonly onToken: () => void;
}): ReactNode {
  const [token, setToken] = useState("");
  const given = token.trim();
  const enter = useAction(async () => {
    // A header can hold no other characters, and a request that cannot be made looks like a server that is not there.
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
        This server lets in who has one of its API tokens. It is kept until the tab is closed. Of a server that you
        started yourself, skein open prints the address that lets you in.
      </p>
      <form onSubmit={submit}>
        <label>
          API token
          <input
            className="field"
            type="password"
            autoComplete="off"
            // biome-ignore lint/a11y/noAutofocus: it is all there is to do here.
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
