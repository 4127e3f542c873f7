import { toast } from "sonner";
import { Switch } from "@/ui/switch";
import { usePreferences, useSavePreferences } from "./preferences";
import { Section } from "./section";

export function StartSection() {
  const { data: current } = usePreferences();
  const save = useSavePreferences();
  const choose = (load_on_start: boolean) => {
    if (!current) return;
    save.mutate({ ...current, load_on_start }, { onError: ({ message }) => toast.error(message) });
  };
  return (
    <Section title="Start">
      <div className="flex items-center justify-between gap-4">
        <div>
          <label htmlFor="load-on-start" className="font-medium text-sm">
            Load a model on start
          </label>
          <p className="text-muted-foreground text-sm">
            The last one that was loaded; the first time, the built-in one.
          </p>
        </div>
        <Switch
          id="load-on-start"
          checked={current?.load_on_start ?? false}
          disabled={!current || save.isPending}
          onCheckedChange={choose}
        />
      </div>
    </Section>
  );
}
