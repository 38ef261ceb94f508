/* grid.cpp: numbers in templates of templates: rows of several types share the lines of one template, and everything
 * goes through vectors and maps of the library. */
#include <array>
#include <complex>
#include <map>
#include <string>
#include <tuple>
#include <vector>

template <class T, int N> class Tensor
{
    std::map<std::tuple<int, int>, std::vector<std::array<T, N>>> blocks;

  public:
    void fill(int width, int height)
    {
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                blocks[{x, y}].resize(64); /* planted */
    }
    size_t size() const
    {
        return blocks.size();
    }
};

template <class... T> struct Model : Tensor<T, 4>... {
    std::map<std::string, std::vector<double>> parameters;
    void load()
    {
        (Tensor<T, 4>::fill(12, 12), ...);
        for (int i = 0; i < 300; i++)
            parameters["parameter number " + std::to_string(i)].assign(32, 0.5);
    }
};

int main()
{
    auto *model = new Model<float, double, std::complex<double>, short>;
    model->load();
    return model->Tensor<float, 4>::size() == 144 ? 0 : 1;
}
