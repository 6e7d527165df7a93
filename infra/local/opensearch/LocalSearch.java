import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.CountDownLatch;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Setting;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.mapper.MapperExtrasPlugin;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.knn.plugin.KNNPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.plugins.ExtensiblePlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.ScriptPlugin;
import org.opensearch.script.ScriptContext;
import org.opensearch.script.ScriptEngine;
import org.opensearch.transport.Netty4Plugin;

/**
 * An OpenSearch node that lives on its class path alone, without the distribution's folders of modules and plugins.
 *
 * <p>Arguments: the folder with config/opensearch.yml, the folder for data, the port. It listens on 127.0.0.1 and closes itself on SIGTERM.
 */
public final class LocalSearch {
    private static final List<Class<? extends Plugin>> PLUGINS = List.of(
        Netty4Plugin.class, ScriptsOfAllPlugins.class, ReindexPlugin.class, MapperExtrasPlugin.class, CommonAnalysisPlugin.class, KNNPlugin.class);

    private LocalSearch() {}

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Map<String, String> here = Map.of(
            "path.data", Path.of(arguments[1]).resolve("nodes").toString(),
            "path.logs", Path.of(arguments[1]).resolve("logs").toString(),
            "network.host", "127.0.0.1",
            "http.port", arguments[2]);
        Settings root = Settings.builder().put("path.home", home.toString()).build();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(root, here, home.resolve("config"), () -> "local");
        LogConfigurator.setNodeName("local");
        LogConfigurator.configure(environment);

        Node node = new ClassPathNode(environment);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node), "close"));
        node.start();
        new CountDownLatch(1).await();
    }

    private static void close(Node node) {
        try {
            node.close();
        } catch (Exception failure) {
            failure.printStackTrace();
        }
    }

    /** Opens the constructor that takes plugins by class. */
    private static final class ClassPathNode extends Node {
        ClassPathNode(Environment environment) {
            super(environment, PLUGINS, true);
        }
    }

    /**
     * Painless with what other plugins add to it, which is how k-NN's functions get into scripts.
     *
     * <p>A node tells only plugins from its plugins folder of one another, and PainlessPlugin can't be extended: hence a plugin around it.
     */
    public static final class ScriptsOfAllPlugins extends Plugin implements ScriptPlugin {
        private final PainlessPlugin inner = new PainlessPlugin();

        public ScriptsOfAllPlugins() {
            inner.loadExtensions(new ExtensiblePlugin.ExtensionLoader() {
                @Override
                public <T> List<T> loadExtensions(Class<T> point) {
                    return ServiceLoader.load(point).stream().map(ServiceLoader.Provider::get).toList();
                }
            });
        }

        @Override
        public ScriptEngine getScriptEngine(Settings settings, Collection<ScriptContext<?>> contexts) {
            return inner.getScriptEngine(settings, contexts);
        }

        @Override
        public List<ScriptContext<?>> getContexts() {
            return inner.getContexts();
        }

        @Override
        public List<Setting<?>> getSettings() {
            return inner.getSettings();
        }
    }
}
