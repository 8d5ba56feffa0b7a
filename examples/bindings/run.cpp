// Runs a model on a picture with vertical stripes: run MODEL
#include "onx.hpp"

#include <cstdio>
#include <exception>

int main(int argc, char **argv)
{
    try {
        onx::context cx;
        onx::session session(cx, argc > 1 ? argv[1] : "");
        std::vector<float> pixels(64);
        for (size_t i = 0; i < 64; i++)
            pixels[i] = i % 8 % 3 == 1 ? 1.0f : 0.0f;
        onx::value image(cx, pixels, { 1, 1, 8, 8 });
        for (const onx::value &y : session.run(cx, { image.get() }))
            for (uint64_t i = 0; i < y.count(); i++)
                std::printf("%.3f\n", static_cast<double>(y.floats()[i]));
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
