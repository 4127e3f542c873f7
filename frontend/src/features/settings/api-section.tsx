import { useQuery } from "@tanstack/react-query";
import { Tabs } from "radix-ui";
import { useActiveModel } from "@/api/models";
import { CopyButton } from "@/ui/copy-button";
import { curlExample, pythonExample } from "./api-examples";
import { Section } from "./section";

const BUILT_IN = "builtin/smollm2-135m-instruct";

/** Asks as a script would, without the page's own session: a refusal means that a key is needed. */
async function asksForKey(): Promise<boolean> {
  const { status } = await fetch(new URL("/health", window.location.origin), {
    credentials: "omit",
  });
  return status === 401;
}

export function ApiSection() {
  const active = useActiveModel();
  const { data: needsKey = false } = useQuery({
    queryKey: ["needs-key"],
    queryFn: asksForKey,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const place = { origin: window.location.origin, model: active?.model ?? BUILT_IN, needsKey };
  return (
    <Section
      title="API"
      description="Programs that speak to OpenAI speak to Eloquio too: give them this address."
    >
      <div className="flex min-h-11 items-center gap-2 rounded-lg border bg-muted/60 py-1 pr-1.5 pl-4">
        <code className="min-w-0 flex-1 font-mono text-sm [overflow-wrap:anywhere]">
          {place.origin}/v1
        </code>
        <CopyButton text={`${place.origin}/v1`} label="Copy the address" />
      </div>
      <Tabs.Root defaultValue="curl">
        <Tabs.List aria-label="Example" className="flex gap-1">
          <Tab value="curl" label="curl" />
          <Tab value="python" label="Python" />
        </Tabs.List>
        <Example value="curl" text={curlExample(place)} />
        <Example value="python" text={pythonExample(place)} />
      </Tabs.Root>
      <p className="text-muted-foreground text-sm">
        {needsKey ? (
          <>
            This server asks for a key. <Code>eloquio key</Code> prints it on the machine where it
            runs.
          </>
        ) : (
          "No key is needed on this machine."
        )}{" "}
        Every route is described in the{" "}
        <a
          href="/openapi.json"
          target="_blank"
          rel="noopener"
          className="font-medium text-primary underline underline-offset-4"
        >
          OpenAPI document
        </a>
        .
      </p>
    </Section>
  );
}

function Code({ children }: { children: string }) {
  return <code className="rounded bg-muted px-1.5 py-0.5 font-mono text-xs">{children}</code>;
}

function Tab({ value, label }: { value: string; label: string }) {
  return (
    <Tabs.Trigger
      value={value}
      className="h-9 rounded-md px-3 text-muted-foreground text-sm transition-colors hover:text-foreground data-[state=active]:bg-secondary data-[state=active]:font-medium data-[state=active]:text-foreground"
    >
      {label}
    </Tabs.Trigger>
  );
}

function Example({ value, text }: { value: string; text: string }) {
  return (
    <Tabs.Content value={value} className="relative mt-2">
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard.
        tabIndex={0}
        className="overflow-x-auto rounded-lg border bg-muted/60 p-4 pr-12 font-mono text-xs leading-relaxed"
      >
        {text}
      </pre>
      <CopyButton
        text={text}
        label="Copy the example"
        className="absolute top-2 right-2 border bg-card"
      />
    </Tabs.Content>
  );
}
