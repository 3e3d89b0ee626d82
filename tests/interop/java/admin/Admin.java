// Admin.java - the real pulsar-admin, many command lines in one JVM.
//
// A line on the standard input is a JSON array, the words of one command line; the answer is a line {"status", "out", "err"} on the standard output.
// The word --describe alone: what the tool itself knows of its nouns, verbs and options, as JSON in "out".
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.pulsar.admin.cli.PulsarAdminTool;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;

public class Admin {
    static final Gson gson = new GsonBuilder().disableHtmlEscaping().create();
    static final PrintStream answers = System.out;

    public static void main(String[] words) throws Exception {
        new Admin(words[0]).serve();
        System.exit(0);                                  // the tool's client keeps threads of its own
    }

    final PulsarAdminTool tool;
    final CommandLine commands;
    final Method run;

    Admin(String url) throws Exception {
        Properties settings = new Properties();
        settings.setProperty("webServiceUrl", url);
        tool = new PulsarAdminTool(settings);
        Field field = PulsarAdminTool.class.getDeclaredField("commander");
        field.setAccessible(true);
        commands = (CommandLine) field.get(tool);
        run = PulsarAdminTool.class.getDeclaredMethod("run", String[].class);
        run.setAccessible(true);
    }

    void serve() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = gson.fromJson(line, String[].class);
            boolean describe = words.length == 1 && words[0].equals("--describe");
            answers.println(gson.toJson(describe ? Map.of("out", gson.toJson(nouns())) : answer(words)));
            answers.flush();
        }
    }

    Map<String, Object> answer(String[] words) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
        PrintStream toOut = new PrintStream(out, true, "UTF-8"), toErr = new PrintStream(err, true, "UTF-8");
        System.setOut(toOut);
        System.setErr(toErr);
        commands.setOut(new PrintWriter(toOut, true));
        commands.setErr(new PrintWriter(toErr, true));
        boolean good = (boolean) run.invoke(tool, (Object) words);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("status", good ? 0 : 1);
        answer.put("out", out.toString(StandardCharsets.UTF_8));
        answer.put("err", err.toString(StandardCharsets.UTF_8));
        return answer;
    }

    Map<String, Object> nouns() {
        Map<String, Object> nouns = new LinkedHashMap<>();
        commands.getSubcommands().forEach((noun, line) -> {
            if (!line.getSubcommands().isEmpty()) {
                nouns.put(noun, verbs(line));
            }
        });
        return nouns;
    }

    static Map<String, Object> verbs(CommandLine noun) {
        Map<String, Object> verbs = new LinkedHashMap<>();
        noun.getSubcommands().forEach((verb, line) -> {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("name", line.getCommandName());
            one.put("hidden", line.getCommandSpec().usageMessage().hidden());
            one.put("about", List.of(line.getCommandSpec().usageMessage().description()));
            one.put("args", arguments(line.getCommandSpec().positionalParameters()));
            one.put("options", arguments(line.getCommandSpec().options()));
            verbs.put(verb, one);
        });
        return verbs;
    }

    static List<Object> arguments(List<? extends ArgSpec> specs) {
        List<Object> all = new ArrayList<>();
        for (ArgSpec spec : specs) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("names", spec instanceof OptionSpec ? List.of(((OptionSpec) spec).names()) : List.of(spec.paramLabel()));
            one.put("required", spec.required());
            one.put("hidden", spec.hidden());
            one.put("arity", spec.arity().toString());
            one.put("type", spec.type().getSimpleName());
            one.put("default", String.valueOf(spec.initialValue()));
            one.put("about", List.of(spec.description()));
            all.add(one);
        }
        return all;
    }
}
