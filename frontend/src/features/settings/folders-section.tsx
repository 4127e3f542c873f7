import { Folder, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button } from "@/ui/button";
import { ErrorNote } from "@/ui/error-note";
import { Field } from "@/ui/field";
import { IconButton } from "@/ui/icon-button";
import { Input } from "@/ui/input";
import { Spinner } from "@/ui/spinner";
import { usePreferences, useSavePreferences } from "./preferences";
import { Section } from "./section";

export function FoldersSection() {
  const preferences = usePreferences();
  const save = useSavePreferences();
  const [path, setPath] = useState("");
  const current = preferences.data;
  const add = (event: FormEvent) => {
    event.preventDefault();
    const folder = path.trim();
    if (!current || folder === "") return;
    save.mutate(
      { ...current, model_dirs: [...current.model_dirs, folder] },
      { onSuccess: () => setPath("") },
    );
  };
  const remove = (folder: string) => {
    if (!current) return;
    const model_dirs = current.model_dirs.filter((other) => other !== folder);
    save.mutate({ ...current, model_dirs });
  };
  return (
    <Section
      id="folders"
      title="Model folders"
      description="Eloquio lists the GGUF files in these folders and below them. Nothing in them is changed. The Hugging Face cache of this machine is always looked at."
    >
      {preferences.error ? (
        <ErrorNote error={preferences.error} />
      ) : current ? (
        <FolderList folders={current.model_dirs} isPending={save.isPending} onRemove={remove} />
      ) : (
        <p className="flex items-center gap-2 text-muted-foreground text-sm">
          <Spinner /> Reading the settings
        </p>
      )}
      <form onSubmit={add} className="flex items-end gap-2">
        <div className="flex-1">
          <Field label="Add a folder">
            {(control) => (
              <Input
                {...control}
                placeholder="/home/me/models"
                spellCheck={false}
                autoComplete="off"
                value={path}
                onChange={(event) => setPath(event.target.value)}
              />
            )}
          </Field>
        </div>
        <Button type="submit" disabled={!current || save.isPending || path.trim() === ""}>
          Add
        </Button>
      </form>
      {save.error && <ErrorNote error={save.error} />}
    </Section>
  );
}

type FolderListProps = {
  folders: readonly string[];
  isPending: boolean;
  onRemove: (folder: string) => void;
};

function FolderList({ folders, isPending, onRemove }: FolderListProps) {
  if (folders.length === 0)
    return (
      <p className="rounded-lg border border-dashed px-4 py-4 text-muted-foreground text-sm">
        No folder is named yet.
      </p>
    );
  return (
    <ul aria-label="Model folders" className="divide-y rounded-lg border">
      {folders.map((folder) => (
        <li key={folder} className="flex min-h-12 items-center gap-3 py-1 pr-2 pl-4">
          <Folder className="size-4 shrink-0 text-muted-foreground" aria-hidden />
          <code className="min-w-0 flex-1 font-mono text-sm [overflow-wrap:anywhere]">
            {folder}
          </code>
          <IconButton
            label={`Remove ${folder}`}
            hint="Remove"
            size="icon-sm"
            disabled={isPending}
            onClick={() => onRemove(folder)}
          >
            <Trash2 aria-hidden />
          </IconButton>
        </li>
      ))}
    </ul>
  );
}
